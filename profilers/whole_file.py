"""A file is written whole or not at all: beside its place, flushed, then moved there."""

import contextlib
import glob
import os
import re
from typing import Any, Callable, Iterator, List

#: Permissions of a file and of a folder for this user alone, and of a file for all, as the user's
#: mask lets them.
PRIVATE, PRIVATE_FOLDER, FOR_ALL = 0o600, 0o700, 0o666


def private(path: str, flags: int) -> int:
    """An opener, for ``open``, of files that this user alone may read."""
    return os.open(path, flags, PRIVATE)


@contextlib.contextmanager
def whole_file(path: str, mode: int = PRIVATE, is_wanted: Callable[[], bool] = lambda: True) -> Iterator[Any]:
    """A stream of bytes, whose content takes the place of a file when the block has ended.

    is_wanted: asked when all is written.
    Raises OSError, e.g. on a full disk. An older file then stays as it was, as with any error.
    """
    temporary = "%s.%d-%s" % (path, os.getpid(), os.urandom(8).hex())  # a name that nobody can take before
    with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as stream:
        try:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())  # a name without its content would outlast a power cut
            if is_wanted():
                os.replace(temporary, path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)


def unfinished(path: str) -> List[str]:
    """Files that processes have left beside a file when they were killed."""
    beside = glob.glob(glob.escape(path) + ".*")
    return [each for each in beside if re.match(r"\d+-[0-9a-f]{16}$", each[len(path) + 1 :])]
