"""Sources, clocks and streams that tests drive by hand."""

import threading
from pathlib import Path

from backends.streams.arriving import ArrivingSamples
from backends.streams.buffer import PersistingBuffer, SampleBuffer
from backends.streams.sample_codec import ArrayCodec, ArrayType
from backends.streams.segments import SegmentFolder
from backends.streams.source import SampleSource, StreamRecord
from backends.streams.stream_batches import ArrivingBatchSource
from tests.backends.fakes import BATCH, CLASSES, images

CODEC = ArrayCodec((ArrayType("|u1", (2, 2, 3)), ArrayType("<i8", ())), CLASSES)
#: Longer than any test.
NEVER_S = 1e6
#: More samples than any test uses.
PLENTY = 4000


def payload(offset: int) -> bytes:
    """The sample with this offset, of ``fakes.images``."""
    pixels, labels = images(1, offset)
    return CODEC.encode((pixels[0], labels[0]))


def narrowed(sample: bytes) -> bytes:
    """The same sample with a label of 32 bits, as others may write it."""
    pixels, labels = CODEC.batch([sample])
    return ArrayCodec((ArrayType("|u1", (2, 2, 3)), ArrayType("<i4", ()))).encode((pixels[0], labels[0]))


def records(*offsets: int) -> list[StreamRecord]:
    return [StreamRecord(offset, payload(offset)) for offset in offsets]


class HandSource(SampleSource):
    """Delivers the samples up to ``until``, as fast as they are asked for; then it is silent.

    ends: whether it comes to its end there. trouble: why it cannot be reached.
    """

    def __init__(self, until: int = 0, ends: bool = False) -> None:
        self.until, self.ends = until, ends
        self.trouble = ""
        self.offset = 0
        self.begun: list[int] = []
        self.committed: list[int] = []
        self.damaged: set[int] = set()
        self.narrow: set[int] = set()  # whose labels are of another integer
        self._closed = threading.Event()

    @property
    def is_closed(self) -> bool:
        return self._closed.is_set()

    def require_reached(self) -> None:
        if self.trouble:
            raise OSError(self.trouble)

    def begin(self, offset: int) -> None:
        self.begun.append(offset)
        self.offset = offset

    def read(self, wait_s: float) -> list[StreamRecord] | None:
        if self.trouble:
            raise OSError(self.trouble)
        if self.offset >= self.until:
            self._closed.wait(wait_s)
            return None if self.ends else []
        found = records(*range(self.offset, min(self.until, self.offset + 16)))
        self.offset += len(found)
        found = [each._replace(payload=b"x") if each.offset in self.damaged else each for each in found]
        return [each._replace(payload=narrowed(each.payload)) if each.offset in self.narrow else each for each in found]

    def commit(self, offset: int) -> None:
        self.committed.append(offset)

    def close(self) -> None:
        self._closed.set()


_OPEN: list[ArrivingBatchSource] = []


def close_streams() -> None:
    """End the threads of all streams that a test has made with ``stream``."""
    while _OPEN:
        _OPEN.pop().arrivals.close()


def stream(
    source: SampleSource, folder: Path, patience_s: float = NEVER_S, buffer: SampleBuffer | None = None
) -> ArrivingBatchSource:
    """Batches of ``BATCH`` samples of a source, which persist."""
    segments = SegmentFolder(str(folder / "stream"))
    kept = PersistingBuffer(64, segments) if buffer is None else buffer
    arrivals = ArrivingSamples(source, CODEC, kept, patience_s, segments.set_aside)
    _OPEN.append(ArrivingBatchSource(arrivals, CODEC, BATCH))
    return _OPEN[-1]
