"""A lab device has its own /sys and /proc files below its PLANNER_SYSFS_ROOT.

The product reads them like those of a real device. Files of counters that a lab device lacks, such
as the clock of a GPU, are missing, so that the counter is null with its reason.
"""

import math
import os
from collections.abc import Iterable, Mapping

from planner.lab.power_monitors import MONITORS, labels

#: The unit of /proc/stat, USER_HZ: the same on every Linux.
TICKS_PER_S = 100
KIB = 1024


def stat(cpus: float, busy_s: float, lasted_s: float) -> str:
    """/proc/stat after ``busy_s`` of full use of ``cpus`` processors in ``lasted_s`` seconds."""
    busy, all_of_it = int(busy_s * TICKS_PER_S), int(lasted_s * TICKS_PER_S)
    ticks = f"{busy} 0 0 {all_of_it - busy} 0 0 0 0 0 0"
    return "".join(f"cpu{core} {ticks}\n" for core in range(max(1, math.ceil(cpus))))


def meminfo(limit_bytes: int, used_bytes: int) -> str:
    """/proc/meminfo of a device with limited memory, without swap, which the lab does not limit."""
    free_bytes = max(0, limit_bytes - used_bytes)
    return f"MemTotal: {limit_bytes // KIB} kB\nMemAvailable: {free_bytes // KIB} kB\n"


def write_labels(root: str, kind: str | None) -> None:
    """Write the labels of this kind's monitors, and link the machine's own /proc/cpuinfo.

    kind: None for no monitors; labels of another kind are removed
    """
    for other in MONITORS:
        for name in labels(other):
            _unlink(os.path.join(root, name))
    for name, text in (labels(kind) if kind else {}).items():
        os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
        with open(os.path.join(root, name), "w", encoding="ascii") as file:
            file.write(text + "\n")
    show_own(root, "proc/cpuinfo")


def show_own(root: str, name: str) -> None:
    """Link a file of the tree to the same file of the machine."""
    _show(os.path.join(root, name), f"/{name}")


def hide(root: str) -> None:
    """Remove at once all files that a ``SwappedFiles`` has written below a root."""
    _unlink(_shown(root))


class SwappedFiles:
    """Text files below a root that all change at the same moment.

    Each is a link through ``now/shown`` into one of two folders, which are written alternately.
    This costs a fraction of replacing every file. A reader sees a consistent file if it reads
    within a period of opening it.
    """

    def __init__(self, root: str, names: Iterable[str]) -> None:
        self._root, self._shown = root, _shown(root)
        folder, self._next = os.path.dirname(self._shown), 0
        self.close()  # files of a sensor emulator that was killed
        self._sides: tuple[dict[str, _Slot], dict[str, _Slot]] = ({}, {})
        for number, name in enumerate(names):
            _show(os.path.join(root, name), os.path.join(self._shown, str(number)))
            for side, slots in enumerate(self._sides):
                os.makedirs(os.path.join(folder, str(side)), exist_ok=True)
                slots[name] = _Slot(os.path.join(folder, str(side), str(number)))

    def write(self, texts: Mapping[str, str]) -> None:
        """Change every file; names are those of the constructor."""
        for name, slot in self._sides[self._next].items():
            slot.write(texts[name])
        _link(self._shown, str(self._next))
        self._next = 1 - self._next

    def close(self) -> None:
        hide(self._root)


class _Slot:
    """A file kept open, padded to its longest text; readers ignore space at the end."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        self._length = 0

    def write(self, text: str) -> None:
        self._length = max(self._length, len(text) + 1)
        os.pwrite(self._file, f"{text}\n".ljust(self._length).encode("ascii"), 0)


def _shown(root: str) -> str:
    return os.path.join(os.path.abspath(root), "now", "shown")


def _show(path: str, target: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    _link(path, target)


def _link(path: str, target: str) -> None:
    _unlink(f"{path}.new")  # of a sensor emulator that was killed between the next two lines
    os.symlink(target, f"{path}.new")
    os.replace(f"{path}.new", path)


def _unlink(path: str) -> None:
    if os.path.lexists(path):
        os.unlink(path)
