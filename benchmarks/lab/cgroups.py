"""Control groups (version 1 or 2) limit a lab device and hold its processes, pinned to a core."""

import errno
import os
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from .errors import LabError

#: Period of quotas: a device that has waited for the network has its quota of the period left, and
#: computes at full speed for up to a period, as no slow device does. Measured for steps of 100 ms
#: on a quarter of a core: 20 ms with a period of 20 ms, 5 ms with 5 ms. A shorter period grants too
#: little: a single grant must not be below LEAST_US.
PERIOD_US = 5_000
LEAST_US = 1_250
_PATIENCE_S = 5.0
_PAUSE_S = 0.02
_CONTROLLERS = ("cpu", "memory")


def quota_period_us(cpus: float) -> int:
    return max(PERIOD_US, round(LEAST_US / cpus))


class Cgroups(ABC):
    """Groups by name, such as ``planner-lab-x/tx2``, below the mounts of their controllers."""

    #: The file of the memory limit, and the text for no limit.
    _limit: str
    _no_limit: str

    def __init__(self, cpu: Path, memory: Path) -> None:
        self._cpu, self._memory = cpu, memory
        self._roots = tuple(dict.fromkeys((cpu, memory)))

    @abstractmethod
    def set_cpus(self, group: str, cpus: float) -> None:
        """Limit the processor seconds that the group uses in a second."""

    def set_memory(self, group: str, limit_bytes: int | None) -> None:
        """Limit the main memory of the group; None: no limit."""
        _write(self._memory / group / self._limit, self._no_limit if limit_bytes is None else str(limit_bytes))

    def make(self, group: str) -> None:
        for root in self._roots:
            try:
                (root / group).mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise LabError(f"{root}: no control group can be made ({error.strerror}); is it mounted rw?") from error

    def exists(self, group: str) -> bool:
        return any((root / group).exists() for root in self._roots)

    def procs_files(self, group: str) -> list[Path]:
        """The files to which a process writes its number to join."""
        return [root / group / "cgroup.procs" for root in self._roots]

    def processes(self, group: str) -> list[int]:
        """Numbers of the processes of the group and of the groups in it."""
        files = (self._roots[0] / group).rglob("cgroup.procs")
        return [int(number) for file in files for number in _words(file)]

    def signal(self, group: str, number: signal.Signals) -> None:
        """Send a signal to every process, including those started meanwhile."""
        signalled: set[int] = set()
        while new := set(self.processes(group)) - signalled:
            for process in new:
                with suppress(ProcessLookupError):
                    os.kill(process, number)
            signalled |= new

    def end(self, group: str) -> None:
        """End every process and wait for it. Raises LabError where a process does not end."""

        def killed() -> bool:
            self.signal(group, signal.SIGKILL)
            return not self.processes(group)

        if not _until(killed):
            raise LabError(f"{group}: processes {self.processes(group)} do not end; are they stuck in the kernel?")

    def remove(self, group: str) -> None:
        """End its processes and remove the group and its subgroups, if it exists."""
        self.end(group)
        for folder in (root / group for root in self._roots):
            if not _until(partial(_removed, folder)):
                raise LabError(f"{folder}: cannot be removed; what still uses it?")


class V1(Cgroups):
    """Version 1: each controller has a mount."""

    _limit, _no_limit = "memory.limit_in_bytes", "-1"

    def set_cpus(self, group: str, cpus: float) -> None:
        folder, period_us = self._cpu / group, quota_period_us(cpus)
        _write(folder / "cpu.cfs_quota_us", "-1")  # no quota of the old period may exceed what is allowed
        _write(folder / "cpu.cfs_period_us", str(period_us))
        _write(folder / "cpu.cfs_quota_us", str(round(cpus * period_us)))


class V2(Cgroups):
    """Version 2: one mount has all controllers."""

    _limit, _no_limit = "memory.max", "max"

    def __init__(self, root: Path) -> None:
        super().__init__(root, root)

    def make(self, group: str) -> None:
        super().make(group)
        for parent in reversed(Path(group).parents):
            _write(self._cpu / parent / "cgroup.subtree_control", "+cpu +memory")

    def set_cpus(self, group: str, cpus: float) -> None:
        period_us = quota_period_us(cpus)
        _write(self._cpu / group / "cpu.max", f"{round(cpus * period_us)} {period_us}")


def mounted(mountinfo: str) -> Cgroups:
    """The control groups of the version with the CPU controller, from /proc/self/mountinfo.

    Raises LabError where there are none.
    """
    points: dict[str, Path] = {}
    halves = []
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        point, (kind, _, options) = Path(left.split()[4]), right.split(" ", 2)
        if kind == "cgroup2" and "cpu" in (controllers := _words(point / "cgroup.controllers")):
            if "memory" in controllers:
                return V2(point)
            halves.append(point)
        if kind == "cgroup":
            points.update({name: point for name in options.split(",") if name in _CONTROLLERS})
    if missing := [name for name in _CONTROLLERS if name not in points]:
        if halves:
            remedy = "boot with cgroup_enable=memory; in a container, delegate it from outside"
            raise LabError(f"{halves[0]}: these control groups have no memory controller; {remedy}")
        raise LabError(f"no control groups for {', '.join(missing)}; mount cgroup2 at /sys/fs/cgroup")
    return V1(*(points[name] for name in _CONTROLLERS))


def assign_cores(cpus: Mapping[str, float], cores: Collection[int]) -> dict[str, int]:
    """The core of each device, the largest first; empty where one core is not enough for each.

    The scheduler may let two devices share a core although another is free. If their quotas exceed
    a core together, they then get less than their quotas.
    cpus: number of cores by device
    """
    left = dict.fromkeys(cores, 1.0)
    assigned = {}
    for name, share in sorted(cpus.items(), key=lambda each: -each[1]):
        core = max(left, key=lambda core: left[core])
        left[core] -= share
        if left[core] < -1e-9:
            return {}
        assigned[name] = core
    return assigned


def pin(process: int, cores: Collection[int]) -> None:
    """Restrict all threads of a process, and its later children, to these cores."""
    with suppress(FileNotFoundError, ProcessLookupError):  # the process has ended
        for thread in os.listdir(f"/proc/{process}/task"):
            with suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread), cores)


def _words(file: Path) -> list[str]:
    try:
        return file.read_text().split()
    except OSError:
        return []


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text)
    except OSError as error:
        if error.errno == errno.EBUSY and file.name == "cgroup.subtree_control":
            remedy = "move them into a group below it (cgroup.procs), or build the lab outside of the container"
            reason = f"this control group holds processes, as a container's does; {remedy}"
            raise LabError(f"{file.parent}: {reason}") from None
        raise LabError(f"{file}: does not take {text} ({error.strerror})") from error


def _removed(folder: Path) -> bool:
    """Remove a group, unless processes that are ending still make it busy."""
    with suppress(OSError):
        for each in (*sorted(path for path in folder.rglob("*") if path.is_dir())[::-1], folder):
            each.rmdir()
    return not folder.exists()


def _until(done: Callable[[], bool]) -> bool:
    end_s = time.monotonic() + _PATIENCE_S
    while not done():
        if time.monotonic() > end_s:
            return False
        time.sleep(_PAUSE_S)
    return True
