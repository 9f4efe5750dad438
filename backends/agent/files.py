"""The agent keeps the controller's files in one cache folder, each written atomically."""

import contextlib
import os
import shutil
import time
from typing import Any, Dict, Optional

from backends.agent.claims import Claims, claimed, is_claimed

#: Seconds after which a file that no run has asked for is removed.
UNUSED_S = 30 * 86400.0

#: Those of this process by cache, which is one outside of tests.
_claims: Dict[str, Claims] = {}


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
    """Remove what nobody has used for a month, nor uses now: a device's card is small."""
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


def _used(name: str) -> None:
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
