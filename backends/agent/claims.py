"""An agent claims by name what it uses of the cache, so that `planner clean` leaves it there.

The names are lines of a file in the cache that the agent keeps locked. The system unlocks it
however the agent ends.
"""

import contextlib
import fcntl
import os
import tempfile
import threading
from typing import Optional, Set, Tuple

from profilers.regular_file import open_regular

#: How the names of these files begin.
PREFIX = "claims-"


class Claims:
    """What this process uses of one cache."""

    def __init__(self, cache: str) -> None:
        self._cache = cache
        self._names: Set[str] = set()
        self._file: Optional[Tuple[int, str]] = None  # its descriptor and its path
        self._lock = threading.Lock()

    def add(self, name: str) -> None:
        """Claim a file or a folder of the cache, whether or not it is there."""
        with self._lock:
            if name in self._names:
                return
            with contextlib.suppress(OSError):  # the disk is full: so is it for what is stored next, which says so
                if self._file is None:
                    self._file = self._locked_file()
                os.write(self._file[0], os.fsencode(name) + b"\n")
                self._names.add(name)

    def adopt(self, name: str, descriptor: int, path: str) -> None:
        """Take over a locked file that claims a name already."""
        with self._lock:
            os.set_inheritable(descriptor, False)  # a program that this process starts would keep the lock
            self._names.add(name)
            self._file = descriptor, path

    def release(self) -> None:
        """Give up all claims."""
        with self._lock:
            self._names.clear()
            if self._file is not None:
                descriptor, path = self._file
                with contextlib.suppress(OSError):
                    os.unlink(path)
                os.close(descriptor)
                self._file = None

    def _locked_file(self) -> Tuple[int, str]:
        """A new file, which has its name only when it is locked: it never seems a dead agent's."""
        descriptor, hidden = tempfile.mkstemp(prefix="." + PREFIX, dir=self._cache)
        path = os.path.join(self._cache, os.path.basename(hidden)[1:])
        with contextlib.suppress(OSError):  # a file system without locks: whoever reads it takes it for locked
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.rename(hidden, path)
        return descriptor, path


def claimed(cache: str) -> Set[str]:
    """The names that running agents claim, with those of the files that tell so."""
    names: Set[str] = set()
    for name in os.listdir(cache):
        if name.startswith(PREFIX):
            with contextlib.suppress(OSError), open_regular(os.path.join(cache, name)) as stream:
                if _is_locked(stream.fileno()):
                    names.update([name], map(os.fsdecode, stream.read().splitlines()))
    return names


def remove_dead(cache: str) -> None:
    """Remove what agents that were killed have claimed by."""
    for name in os.listdir(cache):
        if name.startswith(PREFIX):
            path = os.path.join(cache, name)
            with contextlib.suppress(OSError), open_regular(path) as stream:
                if not _is_locked(stream.fileno()):
                    os.unlink(path)


def is_claimed(name: str, names: Set[str]) -> bool:
    """Whether a name is among those claimed, or begins with one of them and a dot.

    The latter are files being written, and projects set aside.
    """
    parts = name.split(".")
    return any(".".join(parts[:count]) in names for count in range(1, len(parts) + 1))


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:  # a file system without locks cannot tell either
        return True
    return False
