"""A directory that is being filled: files of samples, in the order of their names."""

import os
import threading
from typing import Callable, List, Optional

from backends.streams.record_frames import pack, pack_end, unpack
from backends.streams.source import SampleSource, StreamRecord

#: The end of the names of files with samples; others are still being written.
ENDING = ".samples"


class DirectorySource(SampleSource):
    """The samples in the files of a directory, which are neither changed nor removed.

    A file holds records (``record_frames``), and its name is the offset of the first. One that is
    damaged counts as far as it can be read, and the rest as one malformed sample.
    pause: waits so many seconds; None to end it with ``close``.
    """

    def __init__(self, path: str, pause: Optional[Callable[[float], object]] = None) -> None:
        self._path = path
        self._closed = threading.Event()
        self._pause = pause or self._closed.wait
        self._offset = 0
        self._last = ""
        self._ended = False

    def begin(self, offset: int) -> None:
        self._offset = offset
        wanted = file_name(offset)
        before = [name for name in self._names() if name <= wanted] if os.path.isdir(self._path) else []
        # All files before the one with this offset are passed over.
        self._last = before[-2] if len(before) > 1 else ""

    def begin_at_end(self) -> None:
        self._last = max(self._names(), default="") if os.path.isdir(self._path) else ""

    def _names(self) -> List[str]:
        return sorted(name for name in os.listdir(self._path) if name.endswith(ENDING))

    def read(self, wait_s: float) -> Optional[List[StreamRecord]]:
        if self._ended:
            return None
        new = [name for name in self._names() if name > self._last]
        if not new:
            self._pause(wait_s)
            return []
        with open(os.path.join(self._path, new[0]), "rb") as stream:
            found = self._records(stream.read())
        self._last = new[0]
        return found

    def _records(self, content: bytes) -> List[StreamRecord]:
        unpacked = unpack(content)
        found = [each for each in unpacked.records if each.offset >= self._offset]
        if found:
            self._offset = found[-1].offset + 1
        if not unpacked.is_whole:
            found.append(StreamRecord(self._offset, b""))
        self._ended = unpacked.ended
        return found

    def commit(self, offset: int) -> None:
        """Nobody asks how far a device is."""

    def close(self) -> None:
        self._closed.set()


class DirectoryWriter:
    """Fills a directory, one file at a time. Raises OSError, for example on a full disk."""

    def __init__(self, path: str) -> None:
        self._path = path
        os.makedirs(path, exist_ok=True)

    def next_offset(self) -> int:
        """Behind the samples that are there already."""
        names = sorted(name for name in os.listdir(self._path) if name.endswith(ENDING))
        if not names:
            return 0
        with open(os.path.join(self._path, names[-1]), "rb") as stream:
            found = unpack(stream.read()).records
        return found[-1].offset + 1 if found else int(names[-1][: -len(ENDING)])

    def write(self, records: List[StreamRecord]) -> None:
        """Add samples, all at once for whoever reads."""
        self._write(records[0].offset, pack(records))

    def end(self, offset: int) -> None:
        """Say that no more samples will come."""
        self._write(offset, pack_end(offset))

    def _write(self, offset: int, content: bytes) -> None:
        path = os.path.join(self._path, file_name(offset))
        with open(path + ".part", "wb") as stream:
            stream.write(content)
        os.replace(path + ".part", path)


def file_name(offset: int) -> str:
    """The name of the file that begins with this offset; names sort as offsets do."""
    return "%020d%s" % (offset, ENDING)
