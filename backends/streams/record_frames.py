"""Records of a stream one after the other, as they lie in files and travel over sockets.

Each is its offset (8 bytes), the length of its payload (4 bytes), both big-endian, and the payload.
No sample is empty: a length of 0 says that the stream ends there.
"""

import struct
from typing import Iterable, List

from backends.streams.source import StreamRecord

_HEAD = struct.Struct(">QI")
#: Most bytes of a sample; what announces more is no stream of samples.
MOST_BYTES = 1 << 26


def pack(records: Iterable[StreamRecord]) -> bytes:
    """Records as bytes."""
    return b"".join(_HEAD.pack(each.offset, len(each.payload)) + each.payload for each in records)


def pack_end(offset: int) -> bytes:
    """The end of a stream whose next sample would have this offset."""
    return _HEAD.pack(offset, 0)


class FrameReader:
    """Takes bytes as they come, and gives whole records.

    ended: whether the end of the stream was read.
    """

    def __init__(self) -> None:
        self._rest = b""
        self.ended = False

    @property
    def is_whole(self) -> bool:
        """Whether the bytes so far end with a record."""
        return not self._rest

    def add(self, content: bytes) -> List[StreamRecord]:
        """The records that are complete with these bytes.

        Raises ValueError for what is no stream of samples.
        """
        content, start, found = self._rest + content, 0, []
        while len(content) - start >= _HEAD.size:
            offset, size = _HEAD.unpack_from(content, start)
            if size > MOST_BYTES:
                raise ValueError("a sample of %d bytes was announced, and at most %d are read" % (size, MOST_BYTES))
            if not size:
                self.ended = True
            elif len(content) - start < _HEAD.size + size:
                break
            else:
                data = start + _HEAD.size
                found.append(StreamRecord(offset, content[data : data + size]))
            start += _HEAD.size + size
        self._rest = content[start:]
        return found
