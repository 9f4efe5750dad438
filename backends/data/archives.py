"""Zip archives (.npz, torch's) say how large they unpack, and are refused by it before they do."""

import zipfile
from typing import Any, BinaryIO

import numpy as np

#: Below this, an archive may unpack to any multiple of its size; above, to MOST_TIMES of it.
FREE_BYTES = 1 << 28
#: Pictures and weights compress to a tenth at best; what unpacks to a thousand times is empty.
MOST_TIMES = 100


def open_npz(stream: BinaryIO) -> Any:
    """The arrays of an archive, as ``numpy.load`` gives them, without pickled objects.

    Raises ValueError where it is none, and where it unpacks to much more than its own size.
    """
    if not zipfile.is_zipfile(stream):
        raise ValueError("it is no npz archive, or truncated")
    require_modest_members(stream)
    return np.load(stream, allow_pickle=False)


def require_modest_members(stream: BinaryIO) -> None:
    """Raises ValueError where a zip archive unpacks to much more than its size; seeks its begin."""
    with zipfile.ZipFile(stream) as archive:
        members = archive.infolist()
    packed, unpacked = (sum(getattr(each, size) for each in members) for size in ("compress_size", "file_size"))
    require_modest(packed, unpacked)
    stream.seek(0)


def require_modest(packed: int, unpacked: int) -> None:
    """Raises ValueError where so few bytes say that they unpack to so many."""
    if unpacked > max(FREE_BYTES, MOST_TIMES * packed):
        raise ValueError("its %d bytes say that they unpack to %d; give it uncompressed" % (packed, unpacked))
