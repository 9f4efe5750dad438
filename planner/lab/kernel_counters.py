"""The sensor emulator reads a device's processor time, bytes and memory from the kernel."""

import os
import time
from typing import NamedTuple

from planner.errors import LabError

#: Counters of the process's own network namespace, whichever /sys is mounted.
NETWORK = "/proc/self/net/dev"
#: Read size; larger than any of these files.
READ_BYTES = 1 << 16


class CpuCounter(NamedTuple):
    """The file with a control group's processor time.

    key: the line that holds it; None where the file is just a number.
    """

    path: str
    unit_s: float
    key: str | None = None


class MemoryCounters(NamedTuple):
    """The files with a control group's memory in use, and its limit."""

    usage: str
    stat: str
    limit_bytes: int


class Counts(NamedTuple):
    """Cumulative counters, and when they were read (monotonic seconds)."""

    at_s: float
    cpu_s: float
    network_bytes: int


class KernelFile:
    """A kernel file kept open, because reading it again is cheaper than opening it."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self._file = os.open(path, os.O_RDONLY)
        except OSError as error:
            raise self._gone(error) from None

    def text(self) -> str:
        """Its present content. Raises LabError."""
        try:
            return os.pread(self._file, READ_BYTES, 0).decode("ascii")
        except OSError as error:
            raise self._gone(error) from None

    def _gone(self, error: OSError) -> LabError:
        return LabError(f"{self.path}: {error.strerror}; is the device's control group gone?")


class KernelCounters:
    """The counters and memory of one device. Raises LabError where they are gone."""

    def __init__(self, usage: CpuCounter, interface: str, memory: MemoryCounters | None) -> None:
        self._usage = usage
        self._interface = interface
        self._cpu = KernelFile(usage.path)
        self._network = KernelFile(NETWORK)
        self._memory = (KernelFile(memory.usage), KernelFile(memory.stat)) if memory else None

    def counts(self) -> Counts:
        cpu_s = cpu_seconds(self._cpu.text(), self._usage)
        return Counts(time.monotonic(), cpu_s, network_bytes(self._network.text(), self._interface))

    def memory_bytes(self) -> int:
        """Memory of the control group without the file cache that is not in use."""
        assert self._memory, "only a limited device counts its memory"
        used, stat = (file.text() for file in self._memory)
        counts = _fields(stat)
        return max(0, int(used) - counts.get("total_inactive_file", counts.get("inactive_file", 0)))  # version 1, 2


def cpu_seconds(text: str, usage: CpuCounter) -> float:
    """Parse the CPU time that a control group has used. Raises LabError."""
    number = int(text) if usage.key is None else _fields(text).get(usage.key)
    if number is None:
        raise LabError(f"{usage.path} has no {usage.key}; is the cpu controller on?")
    return number * usage.unit_s


def network_bytes(text: str, interface: str) -> int:
    """Parse /proc/net/dev: bytes received and sent by an interface. Raises LabError."""
    for line in text.splitlines():
        name, colon, rest = line.partition(":")
        if colon and name.strip() == interface:
            counts = rest.split()
            return int(counts[0]) + int(counts[8])
    raise LabError(f"{interface}: no such interface here; start the sensor emulator in the device's network namespace")


def _fields(text: str) -> dict[str, int]:
    return {name: int(number) for name, number in map(str.split, text.splitlines())}
