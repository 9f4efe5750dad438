"""Records of a stream one after the other, as they lie in files.

Each is its offset (8 bytes), the length of its payload (4 bytes), both big-endian, and the payload.
No sample is empty: a length of 0 says that the stream ends there.
"""

import struct
from typing import Iterable, List, NamedTuple

from backends.streams.source import StreamRecord

_HEAD = struct.Struct(">QI")


class Unpacked(NamedTuple):
    """The records of a file.

    ended: whether the stream ends with them. is_whole: whether nothing is cut off behind them.
    """

    records: List[StreamRecord]
    ended: bool
    is_whole: bool


def pack(records: Iterable[StreamRecord]) -> bytes:
    """Records as bytes."""
    return b"".join(_HEAD.pack(each.offset, len(each.payload)) + each.payload for each in records)


def pack_end(offset: int) -> bytes:
    """The end of a stream whose next sample would have this offset."""
    return _HEAD.pack(offset, 0)


def unpack(content: bytes) -> Unpacked:
    """The records in these bytes, as far as they are whole."""
    start, ended = 0, False
    found: List[StreamRecord] = []
    while len(content) - start >= _HEAD.size:
        offset, size = _HEAD.unpack_from(content, start)
        data = start + _HEAD.size
        if len(content) - data < size:
            break
        if size:
            found.append(StreamRecord(offset, content[data : data + size]))
        ended = ended or not size
        start = data + size
    return Unpacked(found, ended, start == len(content))
