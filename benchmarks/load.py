"""Many workers train on one server, beside strangers that come and go: memory and rate.

    python -m benchmarks.load [--seconds 600] [--workers 64] [--step 0.2]

One `planner train` with its workers as agents on this machine, whose framework is in numpy and
whose every step takes at least ``--step`` seconds. Phases with and without strangers take turns:
``--silent`` connections that never speak are held open, and ``--refused`` ones in all come with a
wrong certificate or none. Memory counts from the first minute on (a quarter of a shorter run).
Memory and rates are medians of phases, which are of one run and of the same minutes.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.reporting import parser, show
from tests.planner.plans import replan
from tests.quick import NUMPY_ALONE, numpy_model
from tests.running import FASHION, Command, agents, fleet_file, plan_file, until

PHASES = 10
#: Seconds after which memory may no longer grow, and seconds between two looks at it.
WARM_S, LOOK_S = 60.0, 1.0
#: What is no growth, and no loss of rate.
FLAT, AS_FAST = 0.05, 0.10
PROCESSES = ("operator", "server")
_LISTENS = "0A"


class Look(NamedTuple):
    """At one moment. t_s: of training; rss: bytes of each process by name."""

    t_s: float
    done: int
    rss: dict[str, int]


class Phase(NamedTuple):
    """Some seconds with strangers or without."""

    strangers: bool
    looks: list[Look]
    came: tuple[int, int]

    @property
    def rate(self) -> float:
        """Steps a second."""
        first, last = self.looks[0], self.looks[-1]
        return (last.done - first.done) / (last.t_s - first.t_s)


class LoadedRun:
    """A run under way, and how far it is."""

    def __init__(self, folder: Path, options: Namespace) -> None:
        names = [f"w{number:02}" for number in range(options.workers)]
        fleet_file(folder, {name: {"environment": {**NUMPY_ALONE, "OMP_NUM_THREADS": "1"}} for name in names})
        plan_file(folder / "plan.json", numpy_model(folder, options.step), names, 100_000_000)
        replan(folder, strategy=options.strategy)
        never = ("--evaluate-every", "100000000")
        self.command = Command(folder, "train", "--data", str(FASHION), "--heartbeat", "30", "--json", *never)
        self._folder, self._server = folder, names[0]
        self._events: Any = None
        self._newest: dict[str, Any] = {}

    def begin(self) -> tuple[str, int]:
        """Wait for the first step of all; the address at which the server listens."""
        until(lambda: self._alive() and any(self._folder.glob("runs/*/events.jsonl")), lambda: self.command.errors)
        self._events = next(self._folder.glob("runs/*/events.jsonl")).open()
        until(lambda: self._alive() and self._all_have_stepped(), lambda: self.command.errors)
        pid, address = listening(agents(self._folder, self._server))
        self.pids = dict(zip(PROCESSES, (self.command.popen.pid, pid), strict=True))
        return address

    def _alive(self) -> bool:
        assert self.command.popen.poll() is None, self.command.errors
        return True

    def _all_have_stepped(self) -> bool:
        self._read()
        workers = self._newest.get("workers", {})
        return len(workers) > 0 and all(each["steps"] for each in workers.values())

    def _read(self) -> None:
        for line in self._events:
            if line.endswith("\n") and '"type": "progress"' in line:
                self._newest = json.loads(line)

    def look(self) -> Look:
        self._alive()
        self._read()
        return Look(
            self._newest["elapsed_s"], self._newest["done"], {name: rss(pid) for name, pid in self.pids.items()}
        )

    def end(self) -> None:
        self.command.popen.terminate()  # as Ctrl-C, which a background job ignores
        self.command.ended()


def rss(pid: int) -> int:
    """Bytes of main memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


def listening(pids: list[int]) -> tuple[int, tuple[str, int]]:
    """The process among these that listens on IPv4, and its address."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    places = {f"socket:[{row[9]}]": row[1] for row in rows if row[3] == _LISTENS}
    for pid in pids:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            if (place := places.get(str(descriptor.readlink()))) is not None:
                host, port = place.split(":")
                return pid, (".".join(str(byte) for byte in bytes.fromhex(host)[::-1]), int(port, 16))
    raise AssertionError("no process listens")


@contextmanager
def strangers(address: tuple[str, int], silent: int, per_s: float) -> Iterator[list[int]]:
    """They come until the block ends; then the list holds how many, silent and refused."""
    words = [*map(str, address), "--silent", str(silent), "--refused", str(per_s)]
    command = [sys.executable, "-m", "benchmarks.strangers", *words]
    came: list[int] = []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline()
        yield came
        came += map(int, process.communicate()[0].split())


def main() -> None:
    made = parser(__doc__)
    made.add_argument("--seconds", type=float, default=600.0, help="of training, in all")
    made.add_argument("--workers", type=int, default=64)
    made.add_argument("--step", type=float, default=0.2, help="seconds that a step takes at least")
    made.add_argument("--silent", type=int, default=700, help="connections that never speak")
    made.add_argument("--refused", type=int, default=4096, help="connections with a wrong certificate or none")
    made.add_argument("--strategy", default="parameter-server")
    options = made.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = LoadedRun(Path(folder), options)
        try:
            phases = _phases(run, options)
        finally:
            run.end()
    rows = [*map(_row, phases), verdict(phases, min(WARM_S, options.seconds / 4))]
    show(f"{options.workers} workers, {options.seconds:g} s", rows, options.json)


def _phases(run: LoadedRun, options: Namespace) -> list[Phase]:
    address, phase_s = run.begin(), options.seconds / PHASES
    per_s = options.refused / (phase_s * (PHASES // 2))
    phases = []
    for _ in range(PHASES // 2):
        with strangers(address, options.silent, per_s) as came:
            looks = _looks(run, phase_s)
        phases += [Phase(True, looks, (came[0], came[1])), Phase(False, _looks(run, phase_s), (0, 0))]
    return phases


def _looks(run: LoadedRun, seconds: float) -> list[Look]:
    end_s, looks = time.monotonic() + seconds, [run.look()]
    while time.monotonic() < end_s:
        time.sleep(LOOK_S)
        looks.append(run.look())
    return looks


def _row(phase: Phase) -> dict[str, Any]:
    mebibytes = {name: statistics.median(each.rss[name] for each in phase.looks) / (1 << 20) for name in PROCESSES}
    return {
        "until, s": phase.looks[-1].t_s, "silent": phase.came[0], "refused": phase.came[1], "steps/s": phase.rate,
        **{f"{name}, MiB": f"{value:.1f}" for name, value in mebibytes.items()}, "verdict": "",
    }  # fmt: skip


def verdict(phases: list[Phase], warm_s: float) -> dict[str, Any]:
    """The growth of each process's memory, and the rate beside strangers over that without."""
    silent, refused = (sum(each.came[kind] for each in phases) for kind in (0, 1))
    end_s = phases[0].looks[0].t_s + warm_s
    growth = {name: max((_change(phases, some, end_s, name) for some in (True, False)), key=abs) for name in PROCESSES}
    beside, alone = (
        statistics.median(each.rate for each in phases if each.strangers is some) for some in (True, False)
    )
    flat = all(abs(each) <= FLAT for each in growth.values())
    as_fast = beside / alone >= 1.0 - AS_FAST
    return {
        "until, s": "all", "silent": silent, "refused": refused, "steps/s": f"{beside / alone:.3f} of alone",
        **{f"{name}, MiB": f"{each:+.1%}" for name, each in growth.items()},
        "verdict": f"{'flat' if flat else 'grows'}, {'as fast' if as_fast else 'slower'}",
    }  # fmt: skip


def _change(phases: Sequence[Phase], strangers: bool, warm_s: float, name: str) -> float:
    """Between medians of phases of one kind: a connection that is heard has a stack."""
    looks = [[look.rss[name] for look in phase.looks if look.t_s >= warm_s] for phase in phases]
    alike = [own for own, phase in zip(looks, phases, strict=True) if own and phase.strangers is strangers]
    return most_change(list(map(statistics.median, alike)))


def most_change(values: Sequence[float]) -> float:
    """The change from the first value that is the largest, either way, as a share of it."""
    return max((value / values[0] - 1.0 for value in values), key=abs)


if __name__ == "__main__":
    main()
