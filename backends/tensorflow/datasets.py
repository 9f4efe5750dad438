"""A ``tf.data.Dataset`` is read in its own order; TensorFlow makes the batches."""

from typing import Any, Iterator, Optional, Sequence, Tuple

import numpy as np
import tensorflow as tf

from backends.data.loader import BatchSource, EvaluationSet, part_slices
from backends.data.sample_order import lane_starts, stretch
from backends.data.sequential_samples import EVEN


class DatasetSamples(EvaluationSet):
    """The samples of a data set; one that is batched is taken apart first."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset.unbatch() if _is_batched(dataset) else dataset

    @property
    def is_empty(self) -> bool:
        return next(iter(self.dataset.take(1)), None) is None

    def count(self) -> Optional[int]:
        """Their number, where TensorFlow knows it."""
        known = int(tf.data.experimental.cardinality(self.dataset).numpy())
        return known if known >= 0 else None

    def batches(self, size: int) -> Iterator[Tuple[int, Any]]:
        count = self.count() if self.in_lanes else None
        samples = self.dataset if not count else _in_lanes(self.dataset, count, min(size, count))
        for batch in samples.batch(size):
            yield int(tf.shape(tf.nest.flatten(batch)[0])[0]), batch

    def loader(self, batch: int, weights: Sequence[float] = (1.0,), member: int = 0) -> "DatasetLoader":
        """Batches of the samples of one member. Raises ValueError where there are no samples."""
        own, count = self.dataset, self.count() if self.in_lanes else None
        if count is not None:
            positions = stretch(count, weights, member)
            own, count = own.skip(int(positions[0])).take(len(positions)), len(positions)
        elif len(weights) > 1:
            own = _owned(own, weights, member)
        if next(iter(own.take(1)), None) is None:
            raise ValueError("the training data hold no sample of this member; are they empty?")
        return DatasetLoader(own, batch, count)


class DatasetLoader(BatchSource):
    """Endless batches of a data set, which TensorFlow reads ahead in threads of its own.

    lanes_of: samples of the data set, where they are drawn in lanes.
    """

    def __init__(self, dataset: Any, batch: int, lanes_of: Optional[int] = None) -> None:
        self._dataset, self._lanes_of = dataset, lanes_of
        self._drawn = 0
        self._size = 0
        self._batches: Iterator[Any] = iter(())
        self.batch = batch

    def __next__(self) -> Any:
        if self._size != self.batch:
            self._size = self.batch
            self._batches = iter(self._rest().batch(self.batch, drop_remainder=True).prefetch(1))
        self._drawn += self._size
        return next(self._batches)

    def _rest(self) -> Any:
        """The samples from here on."""
        if self._lanes_of is None:
            return self._dataset.repeat().skip(self._drawn)
        length = max(1, self._lanes_of // self.batch)
        whole = _in_lanes(self._dataset, self._lanes_of, self.batch, length).repeat()
        return whole.skip(self._drawn // self.batch % length * self.batch)

    def put_back(self) -> None:
        self._drawn -= self._size
        self._size = 0

    def parts(self, most: int) -> Sequence[Tuple[int, Any]]:
        """As in ``BatchSource``; a batch is drawn whole, for another size is another pipeline."""
        whole = next(self)
        return [
            (part.stop - part.start, tf.nest.map_structure(lambda values, at=part: values[at], whole))
            for part in part_slices(self.batch, most)
        ]


def _is_batched(dataset: Any) -> bool:
    """Whether it was batched last; if that is unknown, as of a generator, whether it looks like it.

    Then the first dimension of all its arrays is open.
    """
    known = _batched_last(dataset)
    if known is not None:
        return known
    shapes = [getattr(spec, "shape", None) for spec in tf.nest.flatten(tf.data.experimental.get_structure(dataset))]
    return all(shape is not None and shape.rank and shape[0] is None for shape in shapes)


def _batched_last(dataset: Any) -> Optional[bool]:
    """What the operations of a data set tell: with ``drop_remainder`` no dimension is open."""
    name = type(dataset).__name__.lower()
    if "batch" in name:
        return "unbatch" not in name
    if "flatmap" in name or "interleave" in name:
        return None
    found = set(map(_batched_last, dataset._inputs()))
    return found.pop() if len(found) == 1 else None


def _in_lanes(dataset: Any, samples: int, lanes: int, most: Optional[int] = None) -> Any:
    """One sample of each lane in turn, as ``sample_order`` has it, ``most`` of each."""
    starts = lane_starts(samples, lanes)
    lengths = np.diff(np.append(starts, samples)) if most is None else np.full(lanes, most)
    of_lanes = tf.data.Dataset.from_tensor_slices((starts, lengths))
    return of_lanes.interleave(
        lambda start, length: dataset.skip(start).take(length), cycle_length=lanes, block_length=1
    )


def _owned(dataset: Any, weights: Sequence[float], member: int) -> Any:
    """The samples of one member: each has its share of every stretch, as in ``streams.owners``."""
    total = sum(weights)
    low, high = sum(weights[:member]) / total, sum(weights[: member + 1]) / total
    is_last = member == len(weights) - 1

    def owns(position: Any, sample: Any) -> Any:
        at = tf.math.floormod(tf.cast(position, tf.float64) * EVEN, 1.0)
        return (at >= low) & ((at < high) | is_last)

    return dataset.enumerate().filter(owns).map(lambda position, sample: sample)
