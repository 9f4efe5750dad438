"""Counters of macOS and FreeBSD: the processor's load by iostat(8), memory and swap by ``bsd``."""

import re
from typing import Any, Callable, List, Optional, Tuple

from profilers import bsd
from profilers.file_tree import Unavailable
from profilers.running_program import RunningProgram
from profilers.sensors.polling import Poller

#: A line a second, without columns of disks.
IOSTAT = ("iostat", "-n", "0", "-w", "1")
#: The last integer of a row is the idle share in percent; on a Mac three load averages follow.
_ROW = re.compile(r"\s*(?:[\d.]+\s+)+?(\d{1,3})(?:(?:\s+\d+\.\d+){3})?\s*")


class BsdCounters:
    """Readers of this machine; ``close`` stops what they have started."""

    def __init__(self) -> None:
        self._iostat = RunningProgram(IOSTAT, Busy())
        self._memory = Poller(_memory)

    def candidates(self) -> List[Tuple[str, Callable[[], float]]]:
        """(counter, reader) pairs; ``profilers.counters`` defines the counters."""
        return [("u_cpu", self._iostat.newest), ("u_mem", self._share), ("m_swap", self._swap)]

    def close(self) -> None:
        """Stop the background work; the next read starts it again."""
        self._iostat.close()
        self._memory.close()

    def _share(self) -> float:
        total_bytes, available_bytes = self._memory.newest()[0]
        return float(1.0 - available_bytes / total_bytes)

    def _swap(self) -> float:
        swap_bytes: Optional[float] = self._memory.newest()[1]
        if swap_bytes is None:
            raise Unavailable("sysctl has no " + bsd.SWAP)
        return swap_bytes


class Busy:
    """Busy shares of all cores from lines of iostat, without the first row, which is since boot."""

    def __init__(self) -> None:
        self._rows = 0

    def __call__(self, line: str) -> Optional[float]:
        """The share of a row; None for a heading and for the first row below it."""
        row = _ROW.fullmatch(line)
        self._rows = self._rows + 1 if row else 0
        return 1.0 - min(100, int(row.group(1))) / 100.0 if row and self._rows > 1 else None


def _memory() -> Any:
    found = bsd.memory()
    if found is None:
        raise Unavailable("neither vm_stat nor sysctl tells of the memory")
    return found, bsd.swap_bytes()
