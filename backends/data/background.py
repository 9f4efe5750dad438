"""A loader reads the next batch in the background, where reading takes long enough to pay."""

import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
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


class BackgroundLoader(BatchSource):
    """Batches of a source; the next one is read while the last one is used.

    When the batch size changes, the samples of the batch that was read ahead come again.
    clock: monotonic seconds.
    """

    def __init__(self, source: BatchSource, clock: Callable[[], float] = time.perf_counter) -> None:
        self._source = source
        self._clock = clock
        self._threads = ThreadPoolExecutor(1)
        self._ahead: "Optional[Future[_Read]]" = None
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
            self._ahead = self._threads.submit(self._read)
        return found.batch

    def close(self) -> None:
        if self._ahead is not None:
            wait((self._ahead,), CLOSE_S)
        self._threads.shutdown(wait=False)
        self._source.close()

    def _read(self) -> _Read:
        began = self._clock()
        samples = self._source.batch
        batch = next(self._source)
        return _Read(batch, samples, self._clock() - began)
