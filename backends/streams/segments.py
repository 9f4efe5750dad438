"""Samples that do not fit into memory lie on disk, in files of many each."""

import collections
import contextlib
import os
import shutil
from typing import Deque, List, NamedTuple, Sequence

from backends.streams.record_frames import pack, unpack
from backends.streams.source import StreamRecord
from profilers.whole_file import PRIVATE_FOLDER, private

#: Bytes of malformed samples that are set aside at the most.
MOST_ASIDE_BYTES = 1 << 20


class _Segment(NamedTuple):
    path: str
    samples: int


class SegmentFolder:
    """Files of samples in a folder, oldest first. Its length is the number of samples in them.

    What an earlier process has left there is removed: its samples are read from the source again.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._segments: Deque[_Segment] = collections.deque()
        self._written = 0
        self._samples = 0
        self._aside_bytes = 0
        shutil.rmtree(path, ignore_errors=True)

    def __len__(self) -> int:
        return self._samples

    def append(self, records: Sequence[StreamRecord]) -> None:
        """Write samples to a file of their own, whole or not at all.

        Raises OSError that names the file, for example on a full disk; earlier files stay.
        """
        path = os.path.join(self.path, "%08d.samples" % self._written)
        self._write(path, pack(records))
        self._written += 1
        self._segments.append(_Segment(path, len(records)))
        self._samples += len(records)

    def _write(self, path: str, content: bytes, mode: str = "wb") -> None:
        os.makedirs(self.path, PRIVATE_FOLDER, exist_ok=True)
        try:
            with open(path, mode, opener=private) as stream:
                stream.write(content)
        except OSError as error:
            if mode == "wb":
                with contextlib.suppress(OSError):
                    os.unlink(path)
            raise OSError(error.errno, error.strerror, path) from error

    def take(self) -> List[StreamRecord]:
        """Remove the oldest file; returns its samples. Raises OSError where it cannot be read."""
        segment = self._segments[0]
        with open(segment.path, "rb") as stream:
            found = unpack(stream.read()).records
        os.unlink(segment.path)
        self._segments.popleft()
        self._samples -= segment.samples
        return found

    def set_aside(self, payload: bytes) -> str:
        """Add a malformed sample to the file of those, unless that is large; returns its path."""
        path = os.path.join(self.path, "malformed")
        if self._aside_bytes + len(payload) <= MOST_ASIDE_BYTES:
            self._write(path, pack([StreamRecord(0, payload)]), "ab")
            self._aside_bytes += len(payload)
        return path

    def close(self) -> None:
        """Remove all files of samples; malformed ones stay for whoever looks for the fault."""
        while self._segments:
            with contextlib.suppress(OSError):
                os.unlink(self._segments.popleft().path)
        self._samples = 0
        with contextlib.suppress(OSError):
            os.rmdir(self.path)
