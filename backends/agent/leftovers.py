"""The agent lists what earlier runs have left in the cache, and removes it."""

import contextlib
import os
import re
import sys
import time
from typing import Any, Dict, Optional, Tuple

from backends.agent import claims, files
from backends.protocol.events import CacheEntry, CacheFolder
from backends.protocol.orders import FindCache, ListCache, RemoveEntries

#: Names of what planner keeps in its cache, mostly hashes; what has another name is not ours.
_NAME = re.compile(r"(?:(agent|data|file|model|project|run)-[0-9a-f]{12,64}|(claims)-\w{8})(?:[.-].*)?")
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


def find_cache(task: Any, order: FindCache) -> CacheFolder:
    """The cache of this device; this agent gives up its claims there."""
    files.release()
    cache = files.cache()
    found = os.stat(cache)
    return CacheFolder(cache, "%s %d %d" % (_machine(), found.st_dev, found.st_ino))


def list_entries(task: Any, order: ListCache) -> Tuple[CacheEntry, ...]:
    """What planner has left, by name, but for the archive of this agent."""
    cache = files.cache()
    held = claims.claimed(cache)
    entries = []
    for name in sorted(os.listdir(cache)):
        kind = _kind(name)
        if kind is None or name == _own_archive() or (kind == "claims" and name in held):
            continue
        path = os.path.join(cache, name)
        with contextlib.suppress(FileNotFoundError):  # another agent has just removed it
            unused_s = max(0.0, time.time() - os.lstat(path).st_mtime)
            entries.append(CacheEntry(name, kind, _size(path), unused_s, claims.is_claimed(name, held)))
    return tuple(entries)


def remove_entries(task: Any, order: RemoveEntries) -> Dict[str, str]:
    """Remove entries of the cache, then the archive of this agent, and the cache if it is empty.

    Returns why an entry is still there, by name; one that a running agent uses by now is kept.
    Raises ValueError for what planner has not made.
    """
    cache = files.cache()
    held = claims.claimed(cache)
    kept = {}
    for name in order.names:
        if _kind(name) is None:
            raise ValueError("%r is nothing that planner keeps in its cache" % name)
        reason = "a run under way uses it" if claims.is_claimed(name, held) else _remove(files.path(name))
        if reason is not None:
            kept[name] = reason
    if not claims.is_claimed(_own_archive(), held):
        _remove(files.path(_own_archive()))
    with contextlib.suppress(OSError):  # it is not empty
        os.rmdir(cache)
    return kept


def _kind(name: str) -> Optional[str]:
    found = _NAME.fullmatch(name)
    return found and (found.group(1) or found.group(2))


def _own_archive() -> str:
    return os.path.basename(sys.argv[0])


def _remove(path: str) -> Optional[str]:
    """Remove a file or a folder; returns why that failed, if it did."""
    try:
        files.remove_all(path)
    except FileNotFoundError:
        pass  # another agent was quicker
    except OSError as error:
        return error.strerror or str(error)
    return None


def _size(path: str) -> int:
    """Bytes of a file, or of all files in a folder; links are not followed."""
    if os.path.islink(path) or not os.path.isdir(path):
        return os.lstat(path).st_size
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += os.lstat(os.path.join(folder, name)).st_size
    return total


def _machine() -> str:
    """Tells machines apart, for as long as they are not started anew."""
    try:
        with open(_BOOT_ID) as stream:
            return stream.read().strip()
    except OSError:
        return os.uname().nodename
