"""Linux offers these counters on every machine: processor clock and load, memory and swap."""

import functools
from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

from profilers.file_tree import FileTree, Unavailable, fail

#: Most clocks read for a sample: some kernels interrupt a core for each.
MAX_CLOCKS = 8
KIB = 1024


class CoreClusters(NamedTuple):
    """Online cores with the design of the first core (``main``), and all others (``second``)."""

    main: Tuple[int, ...]
    second: Tuple[int, ...]


def parse_meminfo(text: str) -> Dict[str, int]:
    """Parse /proc/meminfo, or the like, into bytes by name; entries without a unit are left out."""
    rows = (line.split() for line in text.splitlines())
    return {row[0].rstrip(":"): int(row[1]) * KIB for row in rows if len(row) == 3 and row[2] == "kB"}


def parse_cpuinfo(text: str) -> List[Dict[str, str]]:
    """Parse /proc/cpuinfo into the attributes of each online core; ``processor`` is its number."""
    cores = []
    for block in text.split("\n\n"):
        pairs = (line.partition(":") for line in block.splitlines() if ":" in line)
        core = {key.strip(): value.strip() for key, _, value in pairs}
        if core.get("processor", "").isdigit():
            cores.append(core)
    return cores


def core_clusters(cores: List[Dict[str, str]]) -> CoreClusters:
    """Split cores by (implementer, part): on a TX2, Cortex-A57 and Denver.

    Only ARM states these; elsewhere all cores are in ``main``.
    """
    designs = [(core.get("CPU implementer"), core.get("CPU part")) for core in cores]
    numbers = [int(core["processor"]) for core in cores]
    return CoreClusters(
        tuple(number for number, design in zip(numbers, designs) if design == designs[0]),
        tuple(number for number, design in zip(numbers, designs) if design != designs[0]),
    )


def parse_stat(text: str) -> Dict[int, Tuple[int, int]]:
    """Parse /proc/stat into (busy, total) ticks of each core; waiting for a disk is not busy."""
    ticks = {}
    for line in text.splitlines():
        name, *values = line.split()
        if name.startswith("cpu") and name != "cpu":
            numbers = [int(value) for value in values[:8]]  # what follows, guests, is in user already
            ticks[int(name[3:])] = (sum(numbers) - numbers[3] - numbers[4], sum(numbers))
    return ticks


class Load:
    """Busy share of some cores since the call before; the first call counts from the boot."""

    def __init__(self, tree: FileTree, cores: Tuple[int, ...]) -> None:
        self._tree = tree
        self._cores = cores
        self._ticks = dict.fromkeys(cores, (0, 0))
        self._last: Optional[float] = None

    def __call__(self) -> float:
        before, self._ticks = self._ticks, parse_stat(self._tree.text("proc/stat"))
        common = [core for core in self._cores if core in before and core in self._ticks]
        busy = sum(self._ticks[core][0] - before[core][0] for core in common)
        total = sum(self._ticks[core][1] - before[core][1] for core in common)
        if total > 0:
            self._last = min(1.0, max(0.0, busy / total))
        if self._last is None:
            raise Unavailable("no clock tick has passed since the last read of /proc/stat")
        return self._last


def clock(tree: FileTree, cores: Tuple[int, ...]) -> Callable[[], float]:
    """A reader of the mean clock of some cores in Hz, from cpufreq or else /proc/cpuinfo.

    Cores that share a clock count once.
    """
    domains: Dict[str, str] = {}
    for core in cores:
        folder = "sys/devices/system/cpu/cpu%d/cpufreq/" % core
        try:
            domains.setdefault(tree.text(folder + "related_cpus"), folder + "scaling_cur_freq")
        except Unavailable:
            return functools.partial(_cpuinfo_clock, tree, cores)
    names = list(domains.values())
    names = names[:: -(-len(names) // MAX_CLOCKS)]
    return lambda: 1e3 * sum(tree.number(name) for name in names) / len(names)


def _cpuinfo_clock(tree: FileTree, cores: Tuple[int, ...]) -> float:
    rows = parse_cpuinfo(tree.text("proc/cpuinfo"))
    clocks = [float(row["cpu MHz"]) for row in rows if "cpu MHz" in row and int(row["processor"]) in cores]
    if not clocks:
        raise Unavailable("neither cpufreq nor /proc/cpuinfo tells the processor's clock")
    return 1e6 * sum(clocks) / len(clocks)


def memory_share(tree: FileTree) -> float:
    """Share of main memory in use, 1 - MemAvailable / MemTotal. Raises Unavailable."""
    available, total = _memory(tree, "MemAvailable", "MemTotal")
    return 1.0 - available / total


def swap_bytes(tree: FileTree) -> float:
    """Bytes of swap in use. Raises Unavailable."""
    total, free = _memory(tree, "SwapTotal", "SwapFree")
    return float(total - free)


def _memory(tree: FileTree, *names: str) -> List[int]:
    rows = parse_meminfo(tree.text("proc/meminfo"))
    missing = [name for name in names if name not in rows]
    if missing:
        raise Unavailable("/proc/meminfo has no %s" % missing[0])
    return [rows[name] for name in names]


def candidates(tree: FileTree) -> List[Tuple[str, Callable[[], float]]]:
    """(counter, reader) pairs; ``profilers.counters`` defines the counters."""
    found: List[Tuple[str, Callable[[], float]]] = [
        ("u_mem", functools.partial(memory_share, tree)),
        ("m_swap", functools.partial(swap_bytes, tree)),
    ]
    try:
        cores = core_clusters(parse_cpuinfo(tree.text("proc/cpuinfo")))
        if not cores.main:
            raise Unavailable("/proc/cpuinfo lists no core")
        found += [("f_cpu", clock(tree, cores.main)), ("u_cpu", Load(tree, cores.main))]
        if cores.second:
            found += [
                ("f_cp", clock(tree, cores.second)),
                ("u_cp", Load(tree, cores.second)),
                ("c_cp", lambda: float(len(cores.second))),
            ]
    except Unavailable as error:
        found += [(name, functools.partial(fail, str(error))) for name in ("f_cpu", "u_cpu")]
    return found
