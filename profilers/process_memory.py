"""Main memory of this process: the most that it has taken for a while, and what limits it.

Its own memory counts. Files that it has mapped, such as the libraries of a framework, can be
dropped by the kernel and read again, so they do not.
"""

import ctypes
import platform
import resource
from typing import Dict, NamedTuple, Optional

from profilers import cgroups, procfs
from profilers.file_tree import FileTree, Unavailable

STATUS = "proc/self/status"
CLEAR_REFS = "/proc/self/clear_refs"
#: What clear_refs takes for "forget the peak of the resident set" (Linux 4.0 on).
RESET_PEAK = b"5"
#: Version 1 writes a page short of 2^63 for no limit.
NO_LIMIT = 1 << 60
#: glibc's malloc.h; bytes of an array that is worth a mapping of its own, and its most mappings.
M_MMAP_THRESHOLD, M_MMAP_MAX = -3, -4
LARGE, MAPPINGS = 1 << 20, 1 << 16


class MemoryLimit(NamedTuple):
    """The tightest limit of a process's control groups: its bytes, and those still left of it."""

    most_bytes: int
    left_bytes: int


def limit(tree: FileTree) -> Optional[MemoryLimit]:
    """The limits of the cgroups that this process is in, and of their ancestors; None for none.

    File cache that the kernel can drop does not count as used.
    """
    found = [_limit(tree, folder, is_v2) for folder, is_v2 in cgroups.limiting(tree, "memory")]
    limits = [each for each in found if each is not None]
    if not limits:
        return None
    return MemoryLimit(min(each.most_bytes for each in limits), min(each.left_bytes for each in limits))


def _limit(tree: FileTree, folder: str, is_v2: bool) -> Optional[MemoryLimit]:
    most, used, cache = (
        ("memory.max", "memory.current", "inactive_file")
        if is_v2
        else ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
    )
    try:
        most_bytes = tree.number(folder + "/" + most)
        used_bytes = tree.number(folder + "/" + used)
        statistics = dict(line.split() for line in tree.text(folder + "/memory.stat").splitlines())
    except Unavailable:  # the root has no such files, and "max" is no number
        return None
    if most_bytes >= NO_LIMIT:
        return None
    used_bytes -= int(statistics.get(cache, 0))
    return MemoryLimit(most_bytes, max(0, most_bytes - used_bytes))


class PeakMemory:
    """The most memory of its own that this process has had since ``restart``.

    Linux forgets a peak through /proc/self/clear_refs. Where that cannot be written, as on a Mac,
    only a new peak of the whole process is seen; without /proc that is what is told.
    """

    def __init__(self, tree: FileTree, clear_refs: str = CLEAR_REFS) -> None:
        self._tree = tree
        self._clear_refs = clear_refs
        self.restart()

    def restart(self) -> None:
        """Forget what was."""
        release_freed()
        self._forgotten = self._forget()
        self._former_peak = _peak_bytes(self._status())
        status = self._status()
        self._resident = status.get("VmRSS", 0)
        # Kernels before 4.5 do not tell these apart.
        self._own = status.get("RssAnon", self._resident) + status.get("RssShmem", 0)

    def bytes(self) -> int:
        """The peak. Raises Unavailable where it is hidden behind an earlier one."""
        peak = _peak_bytes(self._status())
        if not self._forgotten and peak <= self._former_peak:
            raise Unavailable("an earlier peak hides it, which cannot be forgotten without %s" % self._clear_refs)
        return self._own + max(0, peak - self._resident)

    def _forget(self) -> bool:
        try:
            with open(self._clear_refs, "wb") as file:
                file.write(RESET_PEAK)
        except OSError:
            return False
        return True

    def _status(self) -> Dict[str, int]:
        return procfs.parse_meminfo(self._tree.first_text(STATUS))


def release_freed() -> None:
    """Return memory that was freed to the system, where that is glibc's to do."""
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).malloc_trim(0)


def return_large_arrays() -> None:
    """Give large arrays back to the system when they are freed, though other memory is kept.

    Where some activations live shorter than others, as with activation checkpointing, a heap that
    is kept has holes that nothing fits into: it was seen to take twice the memory.
    """
    if platform.libc_ver()[0] == "glibc":
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_MMAP_THRESHOLD, LARGE)
        mallopt(M_MMAP_MAX, MAPPINGS)


def _peak_bytes(status: Dict[str, int]) -> int:
    """The peak of the resident set, of files too."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return status.get("VmHWM", most if platform.system() == "Darwin" else most * procfs.KIB)
