"""This module runs tegrastats, which every Jetson has, and parses its lines.

Fields differ between boards, releases and users; unknown ones are skipped.
"""

import functools
import re
from typing import Dict, NamedTuple, Optional

from profilers.file_tree import FileTree, Unavailable
from profilers.running_program import RunningProgram

INTERVAL_MS = 100

_CLOCKED = r"(?<!\S)%s(?:_FREQ)? (?:(\d{1,9})%%)?(?:@\[?([\d,]{1,99})\]?)?"
_MEMORY_CONTROLLER = re.compile(_CLOCKED % "EMC")
#: JetPack 5 states both engines of an Orin's GPU, ``GR3D_FREQ`` and ``GR3D2_FREQ``; Thor states
#: clocks without a load.
_GPU = re.compile(_CLOCKED % "GR3D2?")
_RAIL = re.compile(r"(?<!\S)([A-Za-z][\w.+-]*) (-?\d{1,9})(?:mW)?/-?\d{1,9}(?:mW)?(?:/-?\d{1,9}(?:mW)?)*(?!\S)")


class Line(NamedTuple):
    """The fields of one line.

    counters: values of f_gpu, f_emc (Hz) and u_gpu (0..1), see ``profilers.counters``. Without root
    the clock of the memory controller is unknown.
    rails: watts now by the board's name of the rail.
    """

    counters: Dict[str, float]
    rails: Dict[str, float]


def parse(line: str) -> Line:
    """Parse a line of tegrastats of any release, with any prefix.

    All engines of a GPU count as one: the load of the busiest, and their mean clock. Clocks of 0
    are skipped unless all are 0: an Orin Nano has one engine, and states 0 for the second.
    Rails are ``NAME now/average``, in mW with or without the unit, with any number of further
    values. On an AGX Xavier rails share the names of temperatures (``GPU@32C``, ``GPU 0/0``).
    """
    engines = _GPU.findall(line)
    counters = {
        "f_gpu": _hz(",".join(clocks for _, clocks in engines)),
        "u_gpu": max((int(load) / 100.0 for load, _ in engines if load), default=None),
        "f_emc": _hz(",".join(clocks for _, clocks in _MEMORY_CONTROLLER.findall(line))),
    }
    return Line(
        {name: value for name, value in counters.items() if value is not None},
        {name: int(now) / 1e3 for name, now in _RAIL.findall(line)},
    )


def _hz(megahertz: str) -> Optional[float]:
    """The mean of clocks in MHz, separated by commas; those of 0 are skipped unless all are 0."""
    clocks = [int(part) for part in megahertz.split(",") if part]
    running = [clock for clock in clocks if clock] or clocks[:1]
    return 1e6 * sum(running) / len(running) if running else None


class Tegrastats(RunningProgram):
    """The program; each value is a ``Line``."""

    def __init__(self, tree: FileTree, program: str = "tegrastats") -> None:
        super().__init__([program, "--interval", str(INTERVAL_MS)], parse)
        self._tree = tree

    def newest(self) -> Line:
        """The newest line. Waits only for the first one. Raises Unavailable."""
        if not self._tree.is_own:
            raise Unavailable("tegrastats reads no other file tree than the machine's own")
        line: Line = super().newest()
        return line

    def read(self, counter: str) -> float:
        """A counter of the newest line. Raises Unavailable."""
        try:
            return self.newest().counters[counter]
        except KeyError:
            raise Unavailable("tegrastats does not state it (without root it leaves clocks out)") from None


@functools.lru_cache(maxsize=None)
def shared(root: str) -> Tegrastats:
    """The one program of this process: counters and power sensor read the same lines."""
    return Tegrastats(FileTree(root))
