"""The agent keeps the controller's files in one cache folder, each written atomically.

They hold weights, images and source code, so the folder is closed to other users of the device.
"""

import contextlib
import hashlib
import os
import shutil
import time
from typing import Any, Dict, Iterator, Optional

from backends.agent.claims import Claims, claimed, is_claimed, remove_dead
from profilers.regular_file import open_regular
from profilers.whole_file import PRIVATE_FOLDER, unfinished, whole_file

#: Seconds after which a file that no run has asked for is removed.
UNUSED_S = 30 * 86400.0
_CHUNK_BYTES = 1 << 20

#: Those of this process by cache, which is one outside of tests.
_claims: Dict[str, Claims] = {}


def cache() -> str:
    """The agent's folder, made where it is missing, and closed to other users.

    The bootstrap has checked that it is this user's (``bootstrap.unsafe``).
    """
    root = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    path = os.path.join(root, "planner")
    os.makedirs(path, PRIVATE_FOLDER, exist_ok=True)
    os.chmod(path, PRIVATE_FOLDER)
    return path


def path(name: str) -> str:
    """Where a file of that name is kept.

    Raises ValueError for anything but plain names joined by slashes.
    """
    parts = name.split("/")
    if any(part != os.path.basename(part) or part in ("", ".", "..") for part in parts):
        raise ValueError("%r is not a plain file name" % name)
    return os.path.join(cache(), *parts)


def prune() -> None:
    """Remove what nobody has used for a month, nor uses now, and the claims of dead agents.

    A device's card is small.
    """
    remove_dead(cache())
    old = [name for name in os.listdir(cache()) if _is_old(os.path.join(cache(), name))]
    names = claimed(cache()) if old else set()
    for name in old:
        if not is_claimed(name, names):
            with contextlib.suppress(OSError):  # another agent was quicker, or it is not ours
                remove_all(os.path.join(cache(), name))


def _is_old(path: str) -> bool:
    try:
        return time.time() - os.path.getmtime(path) > UNUSED_S
    except OSError:
        return False


def remove_all(path: str) -> None:
    """Remove a file, a link, or a folder with all that is in it. Raises OSError."""
    (shutil.rmtree if os.path.isdir(path) and not os.path.islink(path) else os.unlink)(path)


def claim(name: str) -> None:
    """Keep a file, or the folder that it is in, from `planner clean` while this process runs."""
    _claims.setdefault(cache(), Claims(cache())).add(name.split("/")[0])


def adopt_claim(name: str, descriptor: int, path: str) -> None:
    """Go on with a claim of the program that has started this one. path: of its locked file."""
    _claims.setdefault(cache(), Claims(cache())).adopt(name, descriptor, path)


def claim_paths(order: Any) -> None:
    """Claim what an order names by its path: an earlier agent may have stored it, and be gone."""
    if isinstance(order, str):
        inside = os.path.join(cache(), "")
        if order.startswith(inside):
            claim(order[len(inside) :])
    elif isinstance(order, (tuple, list)):
        for part in order:
            claim_paths(part)


def release() -> None:
    """Give up all claims."""
    for claims in _claims.values():
        claims.release()


def use(name: str) -> None:
    """Keep a file, or the folder that it is in, also from ``prune`` for a month."""
    claim(name)
    os.utime(os.path.join(cache(), name.split("/")[0]), None)


def store(name: str, data: bytes) -> str:
    """Keep ``data`` under ``name``; returns its path.

    Raises OSError that names the path, e.g. on a full disk.
    """
    target = path(name)
    claim(name)
    prune()
    try:
        make_folders(os.path.dirname(target))
        with whole_file(target) as stream:
            stream.write(data)
        use(name)
    except OSError as error:
        raise OSError(error.errno, error.strerror, target) from error
    return target


def make_folders(path: Any) -> None:
    """Make a folder in the cache, and those that it is in."""
    if not os.path.isdir(path):
        make_folders(os.path.dirname(path))
        with contextlib.suppress(FileExistsError):  # another agent was quicker
            os.mkdir(path, PRIVATE_FOLDER)


def find(name: str, digest: str) -> Optional[str]:
    """The path of a file kept under ``name``, or None; one with another content is removed.

    digest: SHA-256 of its content, in hexadecimal digits.
    """
    target = path(name)
    with contextlib.suppress(FileNotFoundError):
        if os.path.isfile(target) and digest_of(target) == digest:
            use(name)
            return target
        remove_all(target)
    return None


def digest_of(path: Any) -> str:
    """The SHA-256 of a file's content, in hexadecimal digits. Raises OSError."""
    digest = hashlib.sha256()
    with open_regular(path) as stream:
        chunk = stream.read(_CHUNK_BYTES)
        while chunk:
            digest.update(chunk)
            chunk = stream.read(_CHUNK_BYTES)
    return digest.hexdigest()


def fetch(path: str) -> bytes:
    """The content of a file."""
    with open_regular(path) as stream:
        return stream.read()


class FileContent:
    """A file as it is sent: not all in memory, for a checkpoint may be larger than what is free."""

    def __init__(self, path: str) -> None:
        """Raises OSError."""
        self._stream = open_regular(path)
        self.size = os.fstat(self._stream.fileno()).st_size

    def chunks(self) -> Iterator[bytes]:
        """As many bytes as its size, once. What cannot be read is zeros, which a reader notices."""
        left = self.size
        with self._stream:
            while left:
                chunk = b""
                with contextlib.suppress(OSError):
                    chunk = self._stream.read(min(left, _CHUNK_BYTES))
                chunk = chunk or bytes(min(left, _CHUNK_BYTES))
                left -= len(chunk)
                yield chunk


def remove(path: str) -> None:
    """Forget a file, and what is unfinished of it; one that is gone already is no error."""
    for each in (path, *unfinished(path)):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(each)
