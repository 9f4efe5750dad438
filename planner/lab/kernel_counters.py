"""The sensor emulator reads a device's processor time, bytes and memory from the kernel."""

import os
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from planner.errors import LabError

#: Counters of the process's own network namespace, whichever /sys is mounted.
NETWORK = "/proc/self/net/dev"
#: Read size; larger than any of these files.
READ_BYTES = 1 << 16


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
            raise LabError(f"{path}: {error.strerror}; is the device's control group gone?") from None

    def text(self) -> str:
        """Its present content. Raises LabError."""
        try:
            return os.pread(self._file, READ_BYTES, 0).decode("ascii")
        except OSError as error:
            raise LabError(f"{self.path}: {error.strerror}; is the device's control group gone?") from None


class KernelCounters:
    """The counters and memory of one device."""

    def __init__(self, usage: Mapping[str, Any], interface: str, memory: Mapping[str, Any] | None) -> None:
        """Take the arguments from the sensor emulator's CONFIG.json. Raises LabError."""
        self._usage = usage
        self._interface = interface
        self._cpu = KernelFile(usage["path"])
        self._network = KernelFile(NETWORK)
        self._memory = (KernelFile(memory["usage"]), KernelFile(memory["stat"])) if memory else None

    def counts(self) -> Counts:
        """The present counters. Raises LabError where the control group or interface is gone."""
        cpu_s = cpu_seconds(self._cpu.text(), self._usage)
        return Counts(time.monotonic(), cpu_s, network_bytes(self._network.text(), self._interface))

    def memory_bytes(self) -> int:
        """Memory of the control group without the file cache that is not in use."""
        assert self._memory, "only a limited device counts its memory"
        used, stat = (file.text() for file in self._memory)
        counts = _fields(stat)
        return max(0, int(used) - counts.get("total_inactive_file", counts.get("inactive_file", 0)))  # version 1, 2


def cpu_seconds(text: str, usage: Mapping[str, Any]) -> float:
    """Parse the CPU time that a control group has used. Raises LabError."""
    number = _fields(text).get(usage["key"]) if "key" in usage else int(text)
    if number is None:
        raise LabError(f"{usage['path']} has no {usage['key']}; is the cpu controller on?")
    return float(number * usage["unit_s"])


def network_bytes(text: str, interface: str) -> int:
    """Parse /proc/net/dev: bytes received and sent by an interface. Raises LabError."""
    for line in text.splitlines():
        name, colon, rest = line.partition(":")
        if colon and name.strip() == interface:
            counts = rest.split()
            return int(counts[0]) + int(counts[8])
    raise LabError(f"{interface}: no such interface here; start the sensor emulator in the device's network namespace")


def _fields(text: str) -> dict[str, int]:
    """Lines of a name and a number."""
    return {name: int(number) for name, number in (line.split() for line in text.splitlines())}
