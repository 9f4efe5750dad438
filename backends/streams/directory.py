"""A directory that is being filled: files of samples, in the order of their names."""

import errno
import os
import re
import threading
from typing import Callable, Dict, List, Optional

from backends.streams.record_frames import pack, pack_end, unpack
from backends.streams.source import SampleSource, StreamRecord
from profilers.regular_file import open_regular

#: The end of the names of files with samples; others are still being written.
ENDING = ".samples"
_NAME = re.compile(r"\d{20}" + re.escape(ENDING))
#: Errors of a file that is none, or that this user may not read: whatever follows it is read.
_NOT_READABLE = (errno.ENOENT, errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENXIO, errno.EINVAL)


class DirectorySource(SampleSource):
    """The samples in the files of a directory, which are neither changed nor removed.

    A file holds records (``record_frames``), and its name is the offset of the first. One that is
    damaged counts as far as it can be read, and the rest as one malformed sample. What only has
    such an ending, or such a name and is no file that can be read, is skipped.
    pause: waits so many seconds; None to end it with ``close``.
    """

    def __init__(self, path: str, pause: Optional[Callable[[float], object]] = None) -> None:
        self._path = self.name = path
        self.skipped: Dict[str, str] = {}
        self._closed = threading.Event()
        self._pause = pause or self._closed.wait
        self._offset = 0
        self._last = ""
        self._ended = False

    def require_reached(self) -> None:
        os.listdir(self._path)

    def begin(self, offset: int) -> None:
        self._offset = offset
        wanted = file_name(offset)
        before = [name for name in self._names() if name <= wanted] if os.path.isdir(self._path) else []
        # All files before the one with this offset are passed over.
        self._last = before[-2] if len(before) > 1 else ""

    def begin_at_end(self) -> None:
        self._last = max(self._names(), default="") if os.path.isdir(self._path) else ""

    def _names(self) -> List[str]:
        names = [name for name in os.listdir(self._path) if name.endswith(ENDING)]
        self._skip(
            {name: "its name is not the offset of a sample, in 20 digits" for name in names if not _is_named(name)}
        )
        return sorted(filter(_is_named, names))

    def _skip(self, reasons: Dict[str, str]) -> None:
        """Remember what is passed over; several threads may read it."""
        new = {name: reason for name, reason in reasons.items() if name not in self.skipped}
        self.skipped = dict(self.skipped, **new) if new else self.skipped

    def read(self, wait_s: float) -> Optional[List[StreamRecord]]:
        if self._ended:
            return None
        new = [name for name in self._names() if name > self._last]
        if not new:
            self._pause(wait_s)
            return []
        found = self._records(self._content(new[0]))
        self._last = new[0]
        return found

    def _content(self, name: str) -> Optional[bytes]:
        """Of a file; None where that is none. Raises OSError where it may be read later."""
        try:
            with open_regular(os.path.join(self._path, name)) as stream:
                return stream.read()
        except OSError as error:
            if error.errno not in _NOT_READABLE:
                raise
            self._skip({name: "%s" % error.strerror})
            return None

    def _records(self, content: Optional[bytes]) -> List[StreamRecord]:
        if content is None:
            return []
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


def _is_named(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


class DirectoryWriter:
    """Fills a directory, one file at a time. Raises OSError, for example on a full disk."""

    def __init__(self, path: str) -> None:
        self._path = path
        os.makedirs(path, exist_ok=True)

    def next_offset(self) -> int:
        """Behind the samples that are there already."""
        names = sorted(filter(_is_named, os.listdir(self._path)))
        if not names:
            return 0
        with open_regular(os.path.join(self._path, names[-1])) as stream:
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
