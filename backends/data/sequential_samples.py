"""A stream of samples can only be read from its start, in its own order."""

import bisect
import itertools
from typing import Any, Callable, Iterator, List, Optional, Sequence, Tuple

from backends.data.loader import BatchSource, EvaluationSet, part_slices

#: Consecutive multiples of it, modulo 1, fill the interval evenly (the golden ratio).
EVEN = 0.6180339887498949


class SampleStream(EvaluationSet):
    """Samples that are read in order.

    read: begins again at the first sample.
    collate: makes a batch of a list of samples.
    """

    def __init__(self, read: Callable[[], Iterator[Any]], collate: Callable[[List[Any]], Any]) -> None:
        self._read = read
        self._collate = collate

    @property
    def is_empty(self) -> bool:
        return not list(itertools.islice(self._read(), 1))

    def count(self) -> Optional[int]:
        return None

    def batches(self, size: int) -> Iterator[Tuple[int, Any]]:
        samples = self._read()
        while True:
            part = list(itertools.islice(samples, size))
            if not part:
                return
            yield len(part), self._collate(part)

    def loader(self, batch: int, weights: Sequence[float] = (1.0,), member: int = 0) -> "StreamLoader":
        """Batches of the samples of one member. Raises ValueError where there are no samples."""
        return StreamLoader(self._read, self._collate, batch, owners(weights), member)


def owners(weights: Sequence[float]) -> Callable[[int], int]:
    """Which member owns the sample at a position: each gets its share of every stretch."""
    shares = list(itertools.accumulate(weight / sum(weights) for weight in weights))
    last = len(shares) - 1

    def owner(position: int) -> int:
        return min(bisect.bisect(shares, position * EVEN % 1.0), last)

    return owner


class StreamLoader(BatchSource):
    """Endless batches of a member's samples, in the stream's order, again and again."""

    def __init__(
        self,
        read: Callable[[], Iterator[Any]],
        collate: Callable[[List[Any]], Any],
        batch: int,
        owner: Callable[[int], int],
        member: int,
    ) -> None:
        self._read, self._collate = read, collate
        self._owner, self._member = owner, member
        self.batch = batch
        self._samples: Optional[Iterator[Any]] = None
        self._last: List[Any] = []

    def __next__(self) -> Any:
        return self._collate(self._drawn())

    def parts(self, most: int) -> Sequence[Tuple[int, Any]]:
        drawn = self._drawn()
        return [(part.stop - part.start, self._collate(drawn[part])) for part in part_slices(self.batch, most)]

    def _drawn(self) -> List[Any]:
        part: List[Any] = []
        while len(part) < self.batch:
            if self._samples is None:
                self._samples = self._own()
            more = list(itertools.islice(self._samples, self.batch - len(part)))
            if not more:
                self._samples = None
            part += more
        self._last = part
        return part

    def close(self) -> None:
        self._samples = None

    def put_back(self) -> None:
        self._samples = itertools.chain(self._last, self._samples or self._own())

    def _own(self) -> Iterator[Any]:
        """One pass over the member's samples. Raises ValueError where there are none."""
        found = False
        for position, sample in enumerate(self._read()):
            if self._owner(position) == self._member:
                found = True
                yield sample
        if not found:
            raise ValueError("the training data ended before a first sample of this member; are they empty?")
