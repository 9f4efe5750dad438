"""Counters that only a Jetson has: GPU load and clock, memory controller, GPU memory, Denver cores."""

import functools
import re
import subprocess
import threading
from typing import IO, Callable, Dict, List, Optional, Tuple

from profilers import procfs
from profilers.tree import Tree, Unavailable

#: The integrated GPU's folder below /sys/class/devfreq ends in one of these (TX1, TX2, Xavier, Orin).
GPUS = ("gpu", "gm20b", "gp10b", "gv11b", "ga10b")
EMC_CLOCKS = ("sys/kernel/debug/bpmp/debug/clk/emc/rate", "sys/kernel/debug/clk/emc/clk_rate",
              "sys/kernel/debug/clk/override.emc/clk_rate")
NVMAP = "sys/kernel/debug/nvmap/iovmm/clients"
INTERVAL_MS = 100
FIRST_LINE_S = 3.0


def is_tegra(tree):
    # type: (Tree) -> bool
    return "nvidia,tegra" in compatible(tree)


def compatible(tree):
    # type: (Tree) -> str
    """What the device tree says the machine is compatible with; "" where there is none."""
    try:
        return tree.text("proc/device-tree/compatible")
    except Unavailable:
        return ""


def gpu_folder(tree):
    # type: (Tree) -> str
    """The integrated GPU's devfreq folder. Raises Unavailable."""
    for folder in tree.glob("sys/class/devfreq/*"):
        if folder.endswith(GPUS):
            return folder
    raise Unavailable("no integrated GPU under /sys/class/devfreq")


def gpu_load(tree):
    # type: (Tree) -> float
    """Busy share of the integrated GPU (its ``load`` file counts per mille)."""
    return tree.number(gpu_folder(tree) + "/device/load") / 1000.0


def gpu_clock(tree):
    # type: (Tree) -> float
    """Clock of the integrated GPU in Hz."""
    return float(tree.number(gpu_folder(tree) + "/cur_freq"))


def emc_clock(tree):
    # type: (Tree) -> float
    """Clock of the external memory controller in Hz, from debugfs. Raises Unavailable."""
    reason = Unavailable("")
    for name in EMC_CLOCKS:
        try:
            return float(tree.number(name))
        except Unavailable as error:
            reason = error
    raise Unavailable("the memory controller's clock is in debugfs, for root only (%s)" % reason)


def gpu_memory(tree):
    # type: (Tree) -> float
    """Bytes that all processes hold through nvmap, the integrated GPU's allocator. Raises Unavailable."""
    match = re.search(r"^total\s+(\d+)K", tree.text(NVMAP), re.MULTILINE)
    if match is None:
        raise Unavailable("/%s states no total" % NVMAP)
    return float(int(match.group(1)) * procfs.KIB)


def denver_cores(tree):
    # type: (Tree) -> float
    """0.0 on a TX2 whose Denver cores are switched off; they are then in no list of cores."""
    if "tegra186" in compatible(tree):
        return 0.0
    raise Unavailable("this machine has no second cluster of cores")


def parse_tegrastats(line):
    # type: (str) -> Dict[str, float]
    """A line of tegrastats -> those of f_gpu, f_emc (Hz) and u_gpu (0..1) that it states.

    Without root the clocks are missing; ``EMC_FREQ 0%`` then says nothing about the load either.
    Several clocks (``0%@[510,510]``, Orin) are averaged.
    """
    counters = {}
    for field, clock, load in (("GR3D_FREQ", "f_gpu", "u_gpu"), ("EMC_FREQ", "f_emc", None)):
        match = re.search(r"\b%s (\d+)%%(?:@\[?([\d,]+)\]?)?" % field, line)
        if match is None:
            continue
        if load is not None:
            counters[load] = int(match.group(1)) / 100.0
        if match.group(2):
            clocks = [int(part) for part in match.group(2).split(",")]
            counters[clock] = 1e6 * sum(clocks) / len(clocks)
    return counters


class Tegrastats:
    """The tegrastats program, started by a question when it does not run, ended by ``close``."""

    def __init__(self, tree, program="tegrastats"):
        # type: (Tree, str) -> None
        self._tree = tree
        self._program = program
        self._process = None  # type: Optional[subprocess.Popen[str]]
        self._newest = {}  # type: Dict[str, float]
        self._first = threading.Event()

    def read(self, counter):
        # type: (str) -> float
        """A counter of the newest line. Raises Unavailable."""
        if self._tree.emulated:
            raise Unavailable("tegrastats does not read an emulated device")
        if self._process is None:
            self._start()
        if not self._first.wait(FIRST_LINE_S) or self._process is None or self._process.poll() is not None:
            raise Unavailable("tegrastats has ended or stays silent")
        if counter not in self._newest:
            raise Unavailable("tegrastats does not state it (without root it leaves clocks out)")
        return self._newest[counter]

    def close(self):
        # type: () -> None
        """End the program. Idempotent."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            self._first.clear()

    def _start(self):
        # type: () -> None
        command = [self._program, "--interval", str(INTERVAL_MS)]
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, universal_newlines=True)
        except OSError as error:
            raise Unavailable("tegrastats cannot be run: %s" % error.strerror) from None
        threading.Thread(target=self._follow, args=(process.stdout,), daemon=True).start()
        self._process = process

    def _follow(self, lines):
        # type: (IO[str]) -> None
        with lines:
            for line in lines:
                self._newest = parse_tegrastats(line)
                self._first.set()


def candidates(tree):
    # type: (Tree) -> List[Tuple[str, Callable[[], float]]]
    """(counter, reader) pairs; see ``profilers.counters`` for their meanings. Empty off Jetsons."""
    if not is_tegra(tree):
        return []
    readers = (("f_gpu", gpu_clock), ("u_gpu", gpu_load), ("f_emc", emc_clock), ("m_gpu", gpu_memory),
               ("c_cp", denver_cores))
    return [(name, functools.partial(read, tree)) for name, read in readers]
