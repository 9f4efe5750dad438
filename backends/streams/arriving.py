"""Samples arrive in a thread of their own, and a training loop waits until there are enough."""

import collections
import contextlib
import threading
import time
from typing import Callable, Deque, List, Optional, Tuple

from backends.data.arrivals import Arrivals, StreamEnded, WaitInterrupted, never
from backends.protocol.stream_statistics import StreamEnd, StreamPosition, StreamStatistics
from backends.streams.buffer import SampleBuffer
from backends.streams.sample_codec import SampleCodec
from backends.streams.source import SampleSource, StreamRecord

#: Longest wait in a source, and between looks whether a wait is over.
TICK_S = 0.1
#: Seconds between attempts to reach a source.
RETRY_S = 1.0
#: Seconds over which arrivals are counted: a rate that changes shows within this time.
WINDOW_S = 5.0
#: Seconds without which there is no rate yet.
LEAST_S = 1.0
#: What a stream says whose source has delivered everything.
AT_ITS_END = "the stream has ended"


class ArrivalRate:
    """Samples a second, over the last ``WINDOW_S`` seconds.

    clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began_s = clock()
        self._arrivals: Deque[Tuple[float, int]] = collections.deque()
        self._count = 0

    def add(self, count: int) -> None:
        """So many samples have arrived now."""
        self._arrivals.append((self._clock(), count))
        self._count += count

    def per_second(self) -> Optional[float]:
        """The rate; None before it was measured for ``LEAST_S``."""
        now_s = self._clock()
        while self._arrivals and self._arrivals[0][0] <= now_s - WINDOW_S:
            self._count -= self._arrivals.popleft()[1]
        lasted_s = min(WINDOW_S, now_s - self._began_s)
        return None if lasted_s < LEAST_S else self._count / lasted_s


class ArrivingSamples(Arrivals):
    """The samples of a source, in a buffer until they are taken.

    A source that cannot be reached is tried again. Samples that the disk has no room for stay in
    memory, and no others are read then. After the end, what is there may still be taken.

    set_aside: keeps a malformed payload; returns the file.
    patience_s: seconds without a sample after which a wait ends.
    clock: monotonic seconds.
    """

    def __init__(
        self,
        source: SampleSource,
        codec: SampleCodec,
        buffer: SampleBuffer,
        patience_s: float,
        set_aside: Callable[[bytes], str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source = source
        self._codec = codec
        self._buffer = buffer
        self._patience_s = patience_s
        self._set_aside = set_aside
        self._clock = clock
        self._changed = threading.Condition()
        self._closed = threading.Event()
        self._rate = ArrivalRate(clock)
        self._ended: Optional[StreamEnd] = None  # why no more samples will come
        self._trouble = ""  # why none come now
        self._heard_s = clock()
        self._taken: List[StreamRecord] = []  # since the last position
        self._offset = self._committed = 0
        self._batch = self._arrived = self._used = self._malformed = 0
        self._aside = ""
        self.waited_s = 0.0

    # -- receiving ---------------------------------------------------------------------------------

    def begin(self, offset: int = 0) -> None:
        self.prepare(offset)
        threading.Thread(target=self._receive_all, daemon=True).start()

    def prepare(self, offset: int) -> None:
        """Begin without a thread; ``receive`` then does its work."""
        self._offset = self._committed = offset
        self._rate = ArrivalRate(self._clock)
        self._heard_s = self._clock()
        self._source.begin(offset)

    def _receive_all(self) -> None:
        while not self._closed.is_set() and self._ended is None:
            if not self.receive(TICK_S):
                self._closed.wait(RETRY_S)

    def receive(self, wait_s: float) -> bool:
        """Receive what has arrived; return whether the source could be reached."""
        try:
            records = self._source.read(wait_s)
        except OSError as error:
            self._trouble = str(error)
            return False
        except Exception as error:  # noqa: BLE001 - a thread that ends unheard would let the member wait
            self._end(StreamEnd("%s: %s: %s" % (self._source.name, type(error).__name__, error), fault=True))
            return False
        if records is None:
            self._end(StreamEnd(AT_ITS_END))
        elif records:
            self._keep(records)
        return True

    def _end(self, reason: StreamEnd) -> None:
        with self._changed:
            self._ended = self._ended or reason
            self._changed.notify_all()

    def _keep(self, records: List[StreamRecord]) -> None:
        sound = records
        if not self._codec.all_sound([record.payload for record in records]):
            sound = [record for record in map(self._checked, records) if record is not None]
        with self._changed:
            self._trouble = ""
            self._heard_s = self._clock()
            self._rate.add(len(sound))
            self._arrived += len(sound)
            try:
                self._buffer.add(sound, self._rate.per_second() or float(len(sound)))
            except OSError as error:
                self._ended = StreamEnd("%s; free some space, or drop samples with policy=truncate" % error, fault=True)
            self._changed.notify_all()

    def _checked(self, record: StreamRecord) -> Optional[StreamRecord]:
        try:
            return record._replace(payload=self._codec.checked(record.payload))
        except ValueError:
            self._malformed += 1
            with contextlib.suppress(OSError):  # it is counted anyway
                self._aside = self._set_aside(record.payload)
            return None

    # -- waiting and taking ------------------------------------------------------------------------

    def wait(self, count: int, over: Callable[[], bool] = never) -> None:
        with self._changed:
            self._buffer.reserve(count)
            began_s = self._clock()
            try:
                while len(self._buffer) < count:
                    self._require_hope(over, began_s)
                    self._changed.wait(TICK_S)
            finally:
                self.waited_s += self._clock() - began_s

    def _require_hope(self, over: Callable[[], bool], began_s: float) -> None:
        if over() or self._closed.is_set():
            raise WaitInterrupted
        if self._ended is not None:
            reason = "%s, after %d samples" % (self._ended.reason, self._arrived)
            raise StreamEnded(self._ended._replace(reason=reason))
        silent_s = self._clock() - max(self._heard_s, began_s)
        if silent_s > self._patience_s:
            cause = ": " + self._trouble if self._trouble else ""
            told = "%s: no sample has arrived for %.0f s%s" % (self._source.name, silent_s, cause)
            raise StreamEnded(StreamEnd(told, fault=bool(self._trouble)))

    def take(self, count: int) -> List[bytes]:
        """The payloads of the next samples; waits for them."""
        self.wait(count)
        with self._changed:
            records = self._buffer.take(count)
            self._taken += records
            self._batch = count
        return [record.payload for record in records]

    def position(self) -> StreamPosition:
        with self._changed:
            if self._taken:
                self._offset = self._taken[-1].offset + 1
                self._used += len(self._taken)
                self._taken = []
            return StreamPosition(self._offset, self._rate.per_second())

    def commit(self, offset: int) -> None:
        if offset > self._committed:
            self._committed = offset
            self._source.commit(offset)

    def put_back(self) -> None:
        with self._changed:
            self._buffer.put_back(self._taken)
            self._taken = []

    # -- figures and the end -----------------------------------------------------------------------

    def statistics(self) -> StreamStatistics:
        with self._changed:
            return StreamStatistics(
                self._rate.per_second(), self._batch, self._offset, self.waited_s, self._arrived, self._used,
                len(self._buffer), self._buffer.peak, self._buffer.dropped, self._buffer.stored, self._malformed,
                self._aside, len(self._source.skipped), ": ".join(next(iter(self._source.skipped.items()), ())),
            )  # fmt: skip

    def stop(self) -> None:
        self._closed.set()
        self._source.close()
        with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        self.stop()
        with self._changed:
            self._buffer.close()
