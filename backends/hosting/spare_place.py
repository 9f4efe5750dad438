"""A spare place for a checkpoint that the device's disk does not take: a file without a name.

It is open in this process alone, and gone with it. Other processes of the same user open it by its
path under /proc. A newer content takes the place of the older one at once.
"""

import os
import tempfile
from typing import BinaryIO, Callable, Optional, Sequence

#: Memory, and the folder for temporary files (None), which has more room but may be on the same
#: disk as the checkpoint: to look for it is to write there.
_MEMORY = "/dev/shm"  # noqa: S108 - no file has a name there
MEMORY_LAST: Sequence[Optional[str]] = (None, _MEMORY)
MEMORY_FIRST = MEMORY_LAST[::-1]

#: Of the file; kept for as long as the process lives.
_descriptor: Optional[int] = None


def keep(
    write: Callable[[BinaryIO], None], is_wanted: Callable[[], bool], folders: Sequence[Optional[str]] = MEMORY_LAST
) -> str:
    """Keep what is written in the first of the folders that has room; returns its path.

    is_wanted: asked when all is written, before it takes the place of the older one.
    Raises OSError where no folder has room, without /proc, or where it is not wanted.
    """
    if not os.path.isdir(os.path.dirname(_shown(0))):  # a Mac
        raise OSError("this system opens no file without a name to other processes")
    failed: Optional[OSError] = None
    for folder in folders:
        try:
            with tempfile.TemporaryFile(dir=folder) as stream:
                write(stream)
                stream.flush()
                if is_wanted():
                    return _hold(stream.fileno())
        except OSError as error:
            failed = error
    raise failed or OSError("it is not wanted")


def _hold(descriptor: int) -> str:
    global _descriptor  # noqa: PLW0603 - one for the process, whatever runs it hosts in turn
    if _descriptor is None:
        _descriptor = os.dup(descriptor)
    else:
        os.dup2(descriptor, _descriptor, inheritable=False)
    return _shown(_descriptor)


def _shown(descriptor: int) -> str:
    return "/proc/%d/fd/%d" % (os.getpid(), descriptor)
