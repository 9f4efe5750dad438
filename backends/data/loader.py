"""A loader draws batches of samples in a seeded order."""

import abc
from typing import Any, Callable, Iterator, List, Optional, Sequence, Tuple, Union

import numpy as np

from backends.data.arrivals import ALL_THERE, Arrivals, never
from backends.data.injected import NO_INJECTION, Injection
from backends.data.partition import as_labels
from backends.data.sample_order import LaneOrder, SampleOrder, ShuffledOrder, all_in_lanes

#: Positions of samples.
Chosen = Union[slice, np.ndarray]


class EvaluationSet(abc.ABC):
    """Samples that a model is evaluated on.

    most_at_once: samples of a batch that is evaluated: enough to use an accelerator fully, few
        enough for a small board.
    in_lanes: the samples follow one another, and are drawn as ``sample_order.LaneOrder`` does.
    """

    most_at_once = 128
    in_lanes = False

    @property
    @abc.abstractmethod
    def is_empty(self) -> bool: ...

    @abc.abstractmethod
    def count(self) -> Optional[int]:
        """Their number; None where it is not known before they are read."""

    @abc.abstractmethod
    def batches(self, size: int) -> Iterator[Tuple[int, Any]]:
        """All samples in order, in batches of at most ``size``, each with its number of samples."""

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """End what is kept from one evaluation to the next."""


class SampleSet(EvaluationSet):
    """Samples that are read by position; their number is the length."""

    @abc.abstractmethod
    def __len__(self) -> int: ...

    @property
    def is_empty(self) -> bool:
        return not len(self)

    def count(self) -> int:
        return len(self)

    @abc.abstractmethod
    def batch(self, chosen: Chosen) -> Any:
        """These samples as one batch."""

    @abc.abstractmethod
    def labels(self) -> np.ndarray:
        """(count,) whole numbers or texts. Raises ValueError where the samples have no labels."""

    def batches(self, size: int) -> Iterator[Tuple[int, Any]]:
        if self.in_lanes:
            for chosen in all_in_lanes(len(self), size):
                yield len(chosen), self.batch(chosen)
            return
        for start in range(0, len(self), size):
            stop = min(start + size, len(self))
            yield stop - start, self.batch(slice(start, stop))

    def part(self, positions: np.ndarray) -> "SampleSet":
        """Some of them. positions: (n,) int64."""
        return PartOfSamples(self, positions)

    def order(self, seed: int) -> SampleOrder:
        """In which they are drawn for training."""
        return LaneOrder(len(self)) if self.in_lanes else ShuffledOrder(len(self), seed)

    def loader(self, batch: int, seed: int) -> "BatchSource":
        """Batches for training."""
        return BatchLoader(self, batch, seed)


class ArraySamples(SampleSet):
    """Rows of arrays; a batch is a tuple with the same rows of each.

    Images: uint8 or float32 (count, height, width, channels), and labels: int64 (count,).
    """

    def __init__(self, *arrays: np.ndarray) -> None:
        self.arrays = arrays

    def __len__(self) -> int:
        return len(self.arrays[0])

    def batch(self, chosen: Chosen) -> Tuple[np.ndarray, ...]:
        return tuple(array[chosen] for array in self.arrays)

    def labels(self) -> np.ndarray:
        return as_labels(self.arrays[-1], len(self))


class ItemSamples(SampleSet):
    """Samples of a user's data set, which are read one by one.

    items: has a length, and gives the sample at a position.
    collate: makes a batch of a list of samples.
    read_labels: gives the labels of all items.
    """

    def __init__(
        self, items: Any, collate: Callable[[List[Any]], Any], read_labels: Callable[[Any], np.ndarray]
    ) -> None:
        self._items = items
        self._collate = collate
        self._read_labels = read_labels

    def __len__(self) -> int:
        return len(self._items)

    def batch(self, chosen: Chosen) -> Any:
        positions = range(*chosen.indices(len(self))) if isinstance(chosen, slice) else chosen.tolist()
        if hasattr(self._items, "__getitems__"):  # some data sets of torch read many at once
            return self._collate(self._items.__getitems__(list(positions)))
        return self._collate([self._items[position] for position in positions])

    def labels(self) -> np.ndarray:
        return self._read_labels(self._items)


class PartOfSamples(SampleSet):
    """Some samples of a set. positions: (count,) int64."""

    def __init__(self, samples: SampleSet, positions: np.ndarray) -> None:
        self._samples = samples
        self._positions = positions
        self.in_lanes = samples.in_lanes

    def __len__(self) -> int:
        return len(self._positions)

    def batch(self, chosen: Chosen) -> Any:
        return self._samples.batch(self._positions[chosen])

    def labels(self) -> np.ndarray:
        own: np.ndarray = self._samples.labels()[self._positions]
        return own


def part_sizes(samples: int, most: int) -> List[int]:
    """The fewest parts of at most ``most`` samples, as equal as they can be.

    So none is of one sample, of which batch normalisation cannot learn, if ``most`` is 3 or more.
    """
    count = -(-samples // most)
    size, larger = divmod(samples, count)
    return [size + 1] * larger + [size] * (count - larger)


def part_slices(samples: int, most: int) -> Iterator[slice]:
    """The parts of ``part_sizes`` one after the other."""
    start = 0
    for size in part_sizes(samples, most):
        yield slice(start, start + size)
        start += size


class BatchSource(abc.ABC):
    """Endless batches. ``batch``, which may be set, is the number of samples of the next one.

    arrivals: of the samples, where they arrive during training.
    injection: of samples of other devices, where a batch takes in some.
    """

    batch: int
    arrivals: Arrivals = ALL_THERE
    injection: Injection = NO_INJECTION

    def __iter__(self) -> "BatchSource":
        return self

    @abc.abstractmethod
    def __next__(self) -> Any: ...

    def wait(self, over: Callable[[], bool] = never) -> None:
        """Return when the next batch can be drawn. Raises SamplesMissing as ``Arrivals.wait``."""
        self.arrivals.wait(self.batch - self.injection.ready(self.batch), over)

    def parts(self, most: int) -> Sequence[Tuple[int, Any]]:
        """The next batch in parts of at most ``most`` samples, each with its number of samples."""
        whole, found = self.batch, []
        for self.batch in part_sizes(whole, most):
            found.append((self.batch, next(self)))
        self.batch = whole
        return found

    def put_back(self) -> None:  # noqa: B027 - what is not read ahead need not come again
        """The samples of the last batch, whole or in parts, come again with the next ones."""

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """End what reads in the background."""


class BatchLoader(BatchSource):
    """Endless batches in the order of the samples, which run on across the ends of epochs.

    ``order.position`` and ``batch``, the size of the next draw, may be set, so that a run is
    resumed or its batch size changed.
    """

    def __init__(self, samples: SampleSet, batch: int, seed: int) -> None:
        if not len(samples) or batch < 1:
            raise ValueError("cannot draw batches of %d from %d samples" % (batch, len(samples)))
        self.samples, self.batch = samples, batch
        self.order = samples.order(seed)
        self._last = np.empty(0, np.int64)

    def __next__(self) -> Any:
        return self.samples.batch(self._drawn())

    def parts(self, most: int) -> Sequence[Tuple[int, Any]]:
        chosen = self._drawn()
        return [(part.stop - part.start, self.samples.batch(chosen[part])) for part in part_slices(self.batch, most)]

    def _drawn(self) -> np.ndarray:
        self._last = self.order.take(self.batch)
        return self._last

    def put_back(self) -> None:
        self.order.put_back(self._last)
