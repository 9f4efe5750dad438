"""Regular files alone are opened: a pipe or a device of that name would hold up its reader."""

import errno
import os
import stat
from typing import Any, BinaryIO

_KINDS = (
    (stat.S_ISDIR, "it is a folder"),
    (stat.S_ISFIFO, "it is a pipe"),
    (stat.S_ISSOCK, "it is a socket"),
)


def open_regular(path: Any) -> BinaryIO:
    """Open a file for reading, over links; the file must be closed.

    Raises OSError that names the path: EINVAL with what it is where it is no regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "%s, and no file" % kind_of(mode), path)
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def kind_of(mode: int) -> str:
    """In words, what has such a mode."""
    return next((words for applies, words in _KINDS if applies(mode)), "it is a device")
