"""A loader reads the next batch in the background, where reading takes long enough to pay."""

import threading
import time
from typing import Any, Callable, NamedTuple, Optional

from backends.data.loader import BatchSource

#: A batch that is read faster is not worth the change of threads.
WORTH_S = 2e-3
#: What a read that is under way may take when nobody wants it any more.
CLOSE_S = 5.0


class _Read(NamedTuple):
    """A batch of so many samples, and the seconds that reading it took."""

    batch: Any
    samples: int
    seconds: float


class _Ahead(threading.Thread):
    """A read under way; DataLoaders fork workers from it, which no thread of a pool bears."""

    def __init__(self, read: Callable[[], _Read]) -> None:
        super().__init__(name="reading ahead", daemon=True)
        self._read = read
        self._found: Optional[_Read] = None
        self._error: Optional[BaseException] = None
        self.start()

    def run(self) -> None:
        try:
            self._found = self._read()
        except BaseException as error:  # noqa: BLE001 - it belongs to the step that wants the batch
            self._error = error

    def result(self) -> _Read:
        """What was read, once it is."""
        self.join()
        if self._error is not None:
            raise self._error
        assert self._found is not None, "it was read"
        return self._found


class BackgroundLoader(BatchSource):
    """Batches of a source; the next one is read while the last one is used.

    When the batch size changes, the samples of the batch that was read ahead come again.
    clock: monotonic seconds.
    """

    def __init__(self, source: BatchSource, clock: Callable[[], float] = time.perf_counter) -> None:
        self._source = source
        self._clock = clock
        self._ahead: Optional[_Ahead] = None
        self.batch = source.batch

    def __next__(self) -> Any:
        found = None if self._ahead is None else self._ahead.result()
        self._ahead = None
        if found is None or found.samples != self.batch:
            if found is not None:
                self._source.put_back()
            self._source.batch = self.batch
            found = self._read()
        if found.seconds >= WORTH_S:
            self._ahead = _Ahead(self._read)
        return found.batch

    def close(self) -> None:
        if self._ahead is not None:
            self._ahead.join(CLOSE_S)
        self._source.close()

    def _read(self) -> _Read:
        began = self._clock()
        samples = self._source.batch
        batch = next(self._source)
        return _Read(batch, samples, self._clock() - began)
