"""A replay delivers the samples of a data set at a given rate, again and again (ScaDLES)."""

import math
import threading
import time
from typing import Callable, List, NamedTuple, Optional

from backends.data.sample_order import ShuffledOrder
from backends.streams.rate_shape import RateShape
from backends.streams.source import SampleSource, StreamRecord

#: Most samples that are delivered at once: after a long pause many are due.
MOST_AT_ONCE = 512


class ReplaySettings(NamedTuple):
    """rate: samples a second, the plain one of the shape.

    stops_s: seconds after which no more samples arrive.
    malformed: every so many-th sample arrives damaged; 0 for none.
    """

    rate: float
    shape: RateShape = RateShape()
    stops_s: float = math.inf
    malformed: int = 0

    def arrived(self, seconds: float) -> int:
        """Samples that have arrived so many seconds after the beginning."""
        return int(self.rate * self.shape.elapsed(min(seconds, self.stops_s)) + 1e-9)

    def mean_rate(self) -> float:
        """Samples a second that are not damaged, over long times and before the stream stops."""
        sound = 1.0 - 1.0 / self.malformed if self.malformed else 1.0
        return self.rate * sound * self.shape.mean_factor()


class ReplaySource(SampleSource):
    """Samples of a set in a new seeded order each epoch.

    count: samples of the set; encode: the payload of the one at a position.
    clock: monotonic seconds. pause: waits so many seconds; None to end it with ``close``.
    """

    def __init__(
        self,
        count: int,
        encode: Callable[[int], bytes],
        settings: ReplaySettings,
        seed: int,
        clock: Callable[[], float] = time.monotonic,
        pause: Optional[Callable[[float], object]] = None,
    ) -> None:
        self._order = ShuffledOrder(count, seed)
        self._encode = encode
        self.settings = settings
        self._clock = clock
        self._closed = threading.Event()
        self._pause = pause or self._closed.wait
        self._began_s = 0.0
        self._delivered = 0

    def require_reached(self) -> None:
        """Its samples are on the device."""

    def begin(self, offset: int) -> None:
        self._order.position = offset
        self._began_s = self._clock()

    def read(self, wait_s: float) -> Optional[List[StreamRecord]]:
        seconds = self._clock() - self._began_s
        due = self.settings.arrived(seconds) - self._delivered
        if not due:
            if seconds >= self.settings.stops_s:
                return None
            self._pause(min(wait_s, max(1e-3, 1.0 / max(self.settings.rate, 1e-9))))
            return []
        count = min(due, MOST_AT_ONCE)
        self._delivered += count
        return [self._record() for _ in range(count)]

    def _record(self) -> StreamRecord:
        offset = self._order.position
        payload = self._encode(int(self._order.take(1)[0]))
        every = self.settings.malformed
        return StreamRecord(offset, payload[:-1] if every and offset % every == every - 1 else payload)

    def commit(self, offset: int) -> None:
        """Nobody asks how far a device is."""

    def close(self) -> None:
        self._closed.set()
