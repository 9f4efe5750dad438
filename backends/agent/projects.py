"""The agent puts the files of a user's project together in a folder that is named by its content.

The files' contents are in the cache already, each under its SHA-256, so that only what has changed
travels.
"""

import os
import shutil
import tempfile
import time
from typing import Any, Dict, Sequence, Tuple

from backends.agent import files
from backends.protocol.orders import AssembleProject, FindMissing, ProjectFile, cached_as
from profilers.whole_file import PRIVATE_FOLDER


def find_missing(task: Any, order: FindMissing) -> Tuple[str, ...]:
    """The digests whose contents are not in the cache. Raises ValueError for what is no digest."""
    return tuple(digest for digest in order.digests if files.find(cached_as(digest), digest) is None)


def assemble(task: Any, order: AssembleProject) -> str:
    """Make the project's folder and return its path; one that has all its files is used again.

    A folder in which a file has changed is set aside, with what programs have written in it, until
    nobody has used it for a month.
    Raises ValueError for a path that leaves the folder, and for content that is missing.
    """
    _check(order.files)
    target = files.path(order.name)
    files.claim(order.name)
    files.prune()
    if os.path.isdir(target) and _is_whole(target, order.files):
        files.use(order.name)
        return target
    made = tempfile.mkdtemp(prefix=os.path.basename(target) + ".", dir=files.cache())
    try:
        for file in order.files:
            _place(made, file)
        _rename(made, target, order)
    finally:
        shutil.rmtree(made, ignore_errors=True)  # unless it has another name by now
    return target


def _check(listed: Sequence[ProjectFile]) -> None:
    """Raises ValueError unless each path stands for one file inside of a folder."""
    folders: Dict[str, str] = {}
    seen = set()
    for file in listed:
        parts = file.path.split("/")
        if any(part in ("", ".", "..") for part in parts) or "\0" in file.path:
            raise ValueError("%r is not a path inside of a project" % file.path)
        if file.path in seen:
            raise ValueError("%r is in the project twice" % file.path)
        seen.add(file.path)
        folders.update(("/".join(parts[:count]), file.path) for count in range(1, len(parts)))
    for path in seen.intersection(folders):
        raise ValueError("%r is a file, and the folder of %r" % (path, folders[path]))


def _is_whole(folder: str, listed: Sequence[ProjectFile]) -> bool:
    return all(_holds(folder, file) for file in listed)


def _holds(folder: str, file: ProjectFile) -> bool:
    """Whether a file is in the folder, reached over no link, with its content."""
    path = os.fsencode(folder)
    for part in _encoded(file.path).split(b"/"):
        path = os.path.join(path, part)
        if os.path.islink(path):
            return False
    try:
        return os.path.isfile(path) and files.digest_of(path) == file.digest
    except OSError:
        return False


def _place(folder: str, file: ProjectFile) -> None:
    source = files.find(cached_as(file.digest), file.digest)
    if source is None:
        raise ValueError("%s: its content is not in the cache of this device; run the command again" % file.path)
    path = os.path.join(os.fsencode(folder), _encoded(file.path))
    files.make_folders(os.path.dirname(path))
    shutil.copyfile(source, path)
    os.chmod(path, file.mode & PRIVATE_FOLDER)


def _encoded(path: str) -> bytes:
    """A path as bytes: under Python 3.6 a device without a locale cannot name every file."""
    return path.encode("utf-8", "surrogateescape")


def _rename(made: str, target: str, order: AssembleProject) -> None:
    """Give a new folder its name, unless another agent here was quicker with a whole one."""
    try:
        os.rename(made, target)
    except OSError:  # there is one of that name
        if not _is_whole(target, order.files):
            os.rename(target, "%s.%d" % (target, time.time() * 1e6))
            os.rename(made, target)
