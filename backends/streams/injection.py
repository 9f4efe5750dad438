"""Batches in which samples of other devices take the place of some of the own (ScaDLES)."""

import collections
import contextlib
import threading
from typing import Any, Callable, Deque, Dict, List, Optional, Sequence, Tuple

import numpy as np

from backends.data.injected import GivenSamples, Injection
from backends.data.loader import BatchSource, SampleSet, part_slices
from backends.protocol.frames import Share
from backends.protocol.stream_statistics import InjectionStatistics
from backends.streams.sample_codec import ArrayCodec

NO_ARRAYS = "only samples that are tuples of arrays of numbers, read by position, can be given to others"


class SampleInjection(Injection):
    """Samples of others that wait for a batch, and own ones that are given to others.

    A batch takes in all that wait, but keeps one own sample at least. No more wait than a batch
    has: the oldest are dropped. What a device has received it never gives on.

    codec: of the samples, in both directions.
    batch: samples of the first batch.
    most_share: of its own samples that it gives at once, whatever it is asked for.
    set_aside: keeps a malformed payload; returns the file.
    """

    def __init__(
        self, codec: ArrayCodec, batch: int, most_share: float, seed: int, set_aside: Callable[[bytes], str]
    ) -> None:
        self._codec = codec
        self._batch = batch
        self._most_share = most_share
        self._random = np.random.RandomState([seed % (1 << 32), 1])
        self._set_aside = set_aside
        self._lock = threading.Lock()
        self._waiting: Deque[bytes] = collections.deque()
        self._share: Optional[Share] = None
        self._given = GivenSamples()
        self._shared = self._sent_bytes = self._received = self._received_bytes = 0
        self._used = self._dropped = self._malformed = 0
        self._shared_with: Dict[str, int] = {}
        self._aside = ""

    # -- giving ------------------------------------------------------------------------------------

    def begin_step(self, share: Optional[Share]) -> None:
        self._share, self._given = share, GivenSamples()

    def give_of(self, rows: Sequence[np.ndarray]) -> None:
        """Choose what is given of the own samples of a batch, arrays of (count, ...) each.

        Raises ValueError where they are not like the device's first sample: others could not use
        them.
        """
        self._codec.require_rows(rows)
        share, self._share = self._share, None
        if share is None:
            return
        count = len(rows[0])
        most = min(share.samples, int(np.ceil(self._most_share * count)))
        chosen = self._random.permutation(count)[:most]
        payloads = tuple(self._codec.encode([array[place] for array in rows]) for place in chosen)
        self._given = GivenSamples(share.receivers, payloads)

    def take_given(self, through_server: bool) -> GivenSamples:
        given, self._given = self._given, GivenSamples()
        size = sum(map(len, given.payloads))
        with self._lock:
            self._shared += len(given.payloads)
            self._sent_bytes += size if through_server else size * len(given.receivers)
            for name in given.receivers:
                self._shared_with[name] = self._shared_with.get(name, 0) + len(given.payloads)
        return given

    # -- receiving ---------------------------------------------------------------------------------

    def receive(self, payloads: Sequence[bytes]) -> None:
        with self._lock:
            for payload in payloads:
                self._received_bytes += len(payload)
                sound = self._checked(payload)
                if sound is not None:
                    self._received += 1
                    self._waiting.append(sound)
            while len(self._waiting) > self._batch:
                self._waiting.popleft()
                self._dropped += 1

    def _checked(self, payload: bytes) -> Optional[bytes]:
        try:
            return self._codec.checked(payload)
        except ValueError:
            self._malformed += 1
            with contextlib.suppress(OSError):  # it is counted anyway
                self._aside = self._set_aside(payload)
            return None

    def ready(self, batch: int) -> int:
        with self._lock:
            return min(len(self._waiting), batch - 1)

    def take(self, batch: int) -> List[bytes]:
        """Remove and return the samples that a batch of this size takes in."""
        with self._lock:
            self._batch = batch
            taken = [self._waiting.popleft() for _ in range(min(len(self._waiting), batch - 1))]
            self._used += len(taken)
            return taken

    def rows(self, payloads: Sequence[bytes]) -> Tuple[np.ndarray, ...]:
        """The arrays of samples that were taken."""
        return self._codec.batch(payloads)

    def statistics(self) -> InjectionStatistics:
        with self._lock:
            return InjectionStatistics(
                self._shared, self._sent_bytes, self._received, self._received_bytes, self._used, len(self._waiting),
                self._dropped, self._malformed, dict(self._shared_with), self._aside,
            )  # fmt: skip


class InjectedBatches(BatchSource):
    """The batches of a source, of which some samples are those of other devices.

    What the source gives is the smaller by these: no own sample is passed over.
    """

    def __init__(self, source: BatchSource, injection: SampleInjection) -> None:
        self._source = source
        self.injection: SampleInjection = injection
        self.batch = source.batch
        self.arrivals = source.arrivals

    def __next__(self) -> Tuple[np.ndarray, ...]:
        taken = self.injection.take(self.batch)
        self._source.batch = self.batch - len(taken)
        own = tuple(np.asarray(array) for array in next(self._source))
        self.injection.give_of(own)
        if not taken:
            return own
        return tuple(np.concatenate(pair) for pair in zip(own, self.injection.rows(taken)))

    def parts(self, most: int) -> Sequence[Tuple[int, Any]]:
        whole = next(self)
        return [
            (part.stop - part.start, tuple(array[part] for array in whole)) for part in part_slices(self.batch, most)
        ]


def codec_of(samples: Any, classes: Optional[int]) -> ArrayCodec:
    """The codec of a device's own samples. Raises ValueError where no other can be given any."""
    if not isinstance(samples, SampleSet):
        raise ValueError(NO_ARRAYS)
    try:
        return ArrayCodec.of(samples, classes)
    except ValueError:
        raise ValueError(NO_ARRAYS) from None
