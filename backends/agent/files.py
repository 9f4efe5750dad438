"""The agent keeps the controller's files in one cache folder, each written atomically."""

import os
import shutil
import time
from typing import Optional

#: Seconds after which a file that no run has asked for is removed.
UNUSED_S = 30 * 86400.0


def cache() -> str:
    """The agent's folder, made where it is missing."""
    root = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    path = os.path.join(root, "planner")
    os.makedirs(path, exist_ok=True)
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
    """Remove what nobody has used for a month: a device's card is small."""
    for name in os.listdir(cache()):
        old = os.path.join(cache(), name)
        try:
            if time.time() - os.path.getmtime(old) > UNUSED_S:
                (shutil.rmtree if os.path.isdir(old) else os.unlink)(old)
        except OSError:
            pass  # another agent was quicker, or it is not ours


def _used(name: str) -> None:
    """Keep a file, or the folder that it is in, from ``prune`` for a month."""
    os.utime(os.path.join(cache(), name.split("/")[0]), None)


def store(name: str, data: bytes) -> str:
    """Keep ``data`` under ``name``; returns its path.

    Raises OSError that names the path, e.g. on a full disk.
    """
    target = path(name)
    prune()
    temporary = "%s.%d" % (target, os.getpid())
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(temporary, "wb") as stream:
            stream.write(data)
        os.replace(temporary, target)
        _used(name)
    except OSError as error:
        raise OSError(error.errno, error.strerror, target) from error
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)
    return target


def find(name: str) -> Optional[str]:
    """The path of a file kept under ``name``, or None."""
    target = path(name)
    if not os.path.exists(target):
        return None
    _used(name)
    return target


def fetch(path: str) -> bytes:
    """The content of a file."""
    with open(path, "rb") as stream:
        return stream.read()


def remove(path: str) -> None:
    """Forget a file; one that is gone already is no error."""
    if os.path.exists(path):
        os.unlink(path)
