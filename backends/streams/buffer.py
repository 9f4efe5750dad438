"""A buffer keeps the samples that have arrived until a step takes them (ScaDLES, section 3).

The paper's two policies: persistence keeps every sample, so that a stream faster than the training
fills the device, and truncation keeps the newest that arrive in a second and drops the rest.
"""

import abc
import collections
from typing import Deque, Iterable, List, Sequence

from backends.streams.segments import SegmentFolder
from backends.streams.source import StreamRecord

#: Names of the policies.
PERSIST, TRUNCATE = "persist", "truncate"


class SampleBuffer(abc.ABC):
    """First in, first out. Not thread-safe.

    dropped, stored: samples that were dropped, and that were written to disk, in all.
    peak: most samples that it has held.
    """

    def __init__(self) -> None:
        self.dropped = 0
        self.stored = 0
        self.peak = 0

    @abc.abstractmethod
    def __len__(self) -> int: ...

    def add(self, records: Sequence[StreamRecord], rate: float) -> None:
        """Keep samples that have arrived; rate: samples a second, as they arrive now.

        Raises OSError where the disk takes no more; all samples are kept nevertheless.
        """
        try:
            self._append(records, rate)
        finally:
            self.peak = max(self.peak, len(self))

    @abc.abstractmethod
    def _append(self, records: Sequence[StreamRecord], rate: float) -> None: ...

    @abc.abstractmethod
    def reserve(self, count: int) -> None:
        """Keep so many samples at least, for they are waited for."""

    @abc.abstractmethod
    def take(self, count: int) -> List[StreamRecord]:
        """Remove and return the oldest ``count``, which must be there."""

    @abc.abstractmethod
    def put_back(self, records: Iterable[StreamRecord]) -> None:
        """Put what was taken before all others again."""

    @abc.abstractmethod
    def close(self) -> None:
        """Forget everything."""


class TruncatingBuffer(SampleBuffer):
    """Keeps the newest samples: as many as arrive in a second, or as are waited for."""

    def __init__(self) -> None:
        super().__init__()
        self._records: Deque[StreamRecord] = collections.deque()
        self._reserved = 1

    def __len__(self) -> int:
        return len(self._records)

    def _append(self, records: Sequence[StreamRecord], rate: float) -> None:
        self._records.extend(records)
        most = max(self._reserved, int(rate + 0.5))
        while len(self._records) > most:
            self._records.popleft()
            self.dropped += 1

    def reserve(self, count: int) -> None:
        self._reserved = count

    def take(self, count: int) -> List[StreamRecord]:
        return [self._records.popleft() for _ in range(count)]

    def put_back(self, records: Iterable[StreamRecord]) -> None:
        self._records.extendleft(reversed(list(records)))

    def close(self) -> None:
        self._records.clear()


class PersistingBuffer(SampleBuffer):
    """Keeps all samples, of which at most about twice ``memory`` in memory, the rest on disk.

    The oldest are in memory, then come files, and then the newest, until they fill a file.
    """

    def __init__(self, memory: int, folder: SegmentFolder) -> None:
        super().__init__()
        self._memory = memory
        self._folder = folder
        self._oldest: List[StreamRecord] = []
        self._first = 0  # those before are taken: slices of a list are faster than a deque
        self._newest: List[StreamRecord] = []

    def __len__(self) -> int:
        return len(self._oldest) - self._first + len(self._folder) + len(self._newest)

    def _append(self, records: Sequence[StreamRecord], rate: float) -> None:
        rest = records
        del self._oldest[: self._first]
        self._first = 0
        if not len(self._folder) and not self._newest:
            room = max(0, self._memory - len(self._oldest))
            self._oldest.extend(rest[:room])
            rest = rest[room:]
        while rest:
            if len(self._newest) >= self._memory:
                self._store(rest)
            room = self._memory - len(self._newest)
            self._newest += rest[:room]
            rest = rest[room:]

    def _store(self, rest: Sequence[StreamRecord]) -> None:
        """Write the newest to disk; where that fails, they and the rest stay in memory."""
        try:
            self._folder.append(self._newest)
        except OSError:
            self._newest += rest
            raise
        self.stored += len(self._newest)
        self._newest = []

    def reserve(self, count: int) -> None:
        """All samples are kept anyway."""

    def take(self, count: int) -> List[StreamRecord]:
        taken: List[StreamRecord] = []
        while len(taken) < count:
            if self._first == len(self._oldest):
                self._oldest, self._first = self._next(), 0
            found = self._oldest[self._first : self._first + count - len(taken)]
            if not found:
                raise IndexError("%d samples of %d are there" % (len(taken), count))
            taken += found
            self._first += len(found)
        return taken

    def _next(self) -> List[StreamRecord]:
        """The oldest that are not in ``_oldest``."""
        if len(self._folder):
            return self._folder.take()
        newest, self._newest = self._newest, []
        return newest

    def put_back(self, records: Iterable[StreamRecord]) -> None:
        self._oldest, self._first = [*records, *self._oldest[self._first :]], 0

    def close(self) -> None:
        self._oldest, self._first, self._newest = [], 0, []
        self._folder.close()
