"""glibc keeps the memory that a training step frees for the next step."""

import ctypes
import platform

#: glibc's malloc.h.
M_TRIM_THRESHOLD, M_MMAP_MAX, M_ARENA_MAX = -1, -4, -8
NEVER = 2**31 - 1


def keep() -> bool:
    """Let malloc keep what is freed, in one heap for all threads, for the rest of this process.

    A training step allocates and frees the same activations again and again. As it comes, glibc
    returns them to the system each time, and the next step faults every page in anew: 9,000 to
    27,000 faults a step for models of some MB, a tenth to a fifth of its time, more or less of it
    as earlier allocations happen to lie. The process stays as large as it was at its largest. True
    where it was done; elsewhere, as with musl, nothing changes.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return all([mallopt(M_MMAP_MAX, 0), mallopt(M_TRIM_THRESHOLD, NEVER), mallopt(M_ARENA_MAX, 1)])
