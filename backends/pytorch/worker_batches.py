"""Batches that workers of a DataLoader make ahead, in an order that their sizes do not change."""

import collections
import contextlib
from typing import Any, Callable, Deque, Iterable, Iterator, Optional, Sequence, Tuple

import numpy as np

from backends.data.loader import BatchSource, part_sizes
from backends.data.sample_order import SampleOrder
from backends.jobs.failure import JobFailure


class WorkerBatches(BatchSource):
    """Endless batches. Where their sizes change, what was made ahead is read again.

    make: batches of these samples, read ahead by workers as far as they like.
    """

    def __init__(self, order: SampleOrder, make: Callable[[Iterable[np.ndarray]], Iterator[Any]], batch: int) -> None:
        self.order, self._make, self.batch = order, make, batch
        self._sizes: Tuple[int, ...] = ()  # of the parts of a batch
        self._taken: Deque[np.ndarray] = collections.deque()  # that are not delivered
        self._last: Sequence[np.ndarray] = ()
        self._made: Optional[Iterator[Any]] = None

    def __next__(self) -> Any:
        return self.parts(self.batch)[0][1]

    def parts(self, most: int) -> Sequence[Tuple[int, Any]]:
        sizes = tuple(part_sizes(self.batch, most))
        if self._made is None or sizes != self._sizes:
            self._return()
            self._sizes, self._made = sizes, self._make(self._chosen(sizes))
        with said_in_one_line():
            found = [(size, next(self._made)) for size in sizes]
        self._last = [self._taken.popleft() for _ in sizes]
        return found

    def _chosen(self, sizes: Tuple[int, ...]) -> Iterator[np.ndarray]:
        while True:
            parts = np.split(self.order.take(sum(sizes)), np.cumsum(sizes)[:-1])
            self._taken.extend(parts)
            yield from parts

    def put_back(self) -> None:
        self._taken.extendleft(reversed(self._last))
        self._return()

    def _return(self) -> None:
        """End the workers; the samples that they have not delivered come again."""
        self._made, self._last = None, ()
        if self._taken:
            self.order.put_back(np.concatenate(list(self._taken)))
            self._taken.clear()

    def close(self) -> None:
        self._return()


@contextlib.contextmanager
def said_in_one_line() -> Iterator[None]:
    """A worker that refuses a job says so below a traceback; its last line is the reason."""
    try:
        yield
    except JobFailure as error:
        raise JobFailure(str(error).splitlines()[-1].partition("JobFailure: ")[2] or str(error)) from error
