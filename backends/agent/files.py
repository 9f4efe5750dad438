"""Files that the controller keeps on a device: one cache folder, plain names, written whole or not at all."""

import os
import time

#: Seconds after which a file that no run has asked for is removed.
UNUSED_S = 30 * 86400.0


def cache() -> str:
    """The agent's folder, made where it is missing."""
    root = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    path = os.path.join(root, "planner")
    os.makedirs(path, exist_ok=True)
    return path


def path(name: str) -> str:
    """Where a file of that plain name is kept. Raises ValueError for anything but a plain name."""
    if name != os.path.basename(name) or name in ("", ".", ".."):
        raise ValueError("%r is not a plain file name" % name)
    return os.path.join(cache(), name)


def prune() -> None:
    """Remove what nobody has used for a month: a device's card is small."""
    for name in os.listdir(cache()):
        old = os.path.join(cache(), name)
        try:
            if time.time() - os.path.getmtime(old) > UNUSED_S:
                os.unlink(old)
        except OSError:
            pass  # another agent was quicker, or it is not ours


def store(job: object, name: str, data: bytes) -> str:
    """Keep ``data`` under ``name``; returns its path. Raises OSError that names the path, e.g. on a full disk."""
    target = path(name)
    prune()
    temporary = "%s.%d" % (target, os.getpid())
    try:
        with open(temporary, "wb") as stream:
            stream.write(data)
        os.replace(temporary, target)
    except OSError as error:
        raise OSError(error.errno, error.strerror, target) from error
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)
    return target


def stored(job: object, name: str) -> object:
    """The path of a file kept under ``name``, or None."""
    target = path(name)
    if not os.path.exists(target):
        return None
    os.utime(target, None)  # in use: see prune
    return target


def fetch(job: object, path: str) -> bytes:
    """The content of a file."""
    with open(path, "rb") as stream:
        return stream.read()


def remove(job: object, path: str) -> None:
    """Forget a file; one that is gone already is no error."""
    if os.path.exists(path):
        os.unlink(path)
