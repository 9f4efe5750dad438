"""A survey of a folder of data on this device can be compared with those of other devices."""

import hashlib
import os
import stat
from typing import List, Tuple

from backends.data.folder_walk import files_in
from backends.protocol.events import FolderContent
from profilers.regular_file import open_regular

#: So many bytes of either end of a file are read, of so many files, evenly spread by name: a set
#: of a million pictures on a card must not be read as a whole before each run.
END_BYTES = 1 << 16
FILES_READ = 1000
REMEDY = "copy the set there, or correct `data` in the fleet file"


def survey(path: str) -> FolderContent:
    """Number and bytes of the files, and a hash of names, sizes and parts of the content.

    Hidden files are passed over. Raises ValueError where the folder is missing, empty or cannot be
    read.
    """
    require_folder(path)
    try:
        files = _files(path)
        if not files:
            raise ValueError("%s, which the fleet file names as data, is empty; %s" % (path, REMEDY))
        return FolderContent(len(files), sum(size for _, size in files), _hash(path, files))
    except OSError as error:
        raise ValueError("cannot read %s: %s; %s" % (error.filename or path, error.strerror, REMEDY)) from None


def require_folder(path: str) -> None:
    """Raises ValueError where a folder that the fleet file names is not on this device."""
    if not os.path.isdir(path):
        raise ValueError("no folder %s, which the fleet file names as data; %s" % (path, REMEDY))


def _files(folder: str) -> List[Tuple[str, int]]:
    """Relative names with sizes, sorted."""
    found = []  # type: List[Tuple[str, int]]
    for path in files_in(folder):
        told = os.stat(path)
        if stat.S_ISREG(told.st_mode):
            found.append((os.path.relpath(path, folder), told.st_size))
    return sorted(found)


def _hash(folder: str, files: List[Tuple[str, int]]) -> str:
    digest = hashlib.sha256()
    for name, size in files:
        digest.update(b"%s\0%d\0" % (os.fsencode(name), size))
    step = max(1, -(-len(files) // FILES_READ))
    for name, size in files[::step]:
        with open_regular(os.path.join(folder, name)) as stream:
            digest.update(stream.read(END_BYTES))
            if size > END_BYTES:
                stream.seek(max(END_BYTES, size - END_BYTES))
                digest.update(stream.read(END_BYTES))
    return digest.hexdigest()[:16]
