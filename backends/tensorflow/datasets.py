"""A ``tf.data.Dataset`` is read in its own order; TensorFlow makes the batches."""

from typing import Any, Iterator, Optional, Sequence, Tuple

import tensorflow as tf

from backends.data.loader import BatchSource, EvaluationSet, part_slices
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
        for batch in self.dataset.batch(size):
            yield int(tf.shape(tf.nest.flatten(batch)[0])[0]), batch

    def loader(self, batch: int, weights: Sequence[float] = (1.0,), member: int = 0) -> "DatasetLoader":
        """Batches of the samples of one member. Raises ValueError where there are no samples."""
        own = self.dataset if len(weights) == 1 else _owned(self.dataset, weights, member)
        if next(iter(own.take(1)), None) is None:
            raise ValueError("the training data hold no sample of this member; are they empty?")
        return DatasetLoader(own, batch)


class DatasetLoader(BatchSource):
    """Endless batches of a data set, which TensorFlow reads ahead in threads of its own."""

    def __init__(self, dataset: Any, batch: int) -> None:
        self._samples = dataset.repeat()
        self._drawn = 0
        self._size = 0
        self._batches: Iterator[Any] = iter(())
        self.batch = batch

    def __next__(self) -> Any:
        if self._size != self.batch:
            self._size = self.batch
            self._batches = iter(self._samples.skip(self._drawn).batch(self.batch, drop_remainder=True).prefetch(1))
        self._drawn += self._size
        return next(self._batches)

    def parts(self, most: int) -> Sequence[Tuple[int, Any]]:
        """As in ``BatchSource``; a batch is drawn whole, for another size is another pipeline."""
        whole = next(self)
        return [
            (part.stop - part.start, tf.nest.map_structure(lambda values, at=part: values[at], whole))
            for part in part_slices(self.batch, most)
        ]


def _is_batched(dataset: Any) -> bool:
    """Whether the first dimension of all its arrays is open, as batching leaves it."""
    shapes = [getattr(spec, "shape", None) for spec in tf.nest.flatten(tf.data.experimental.get_structure(dataset))]
    return all(shape is not None and shape.rank and shape[0] is None for shape in shapes)


def _owned(dataset: Any, weights: Sequence[float], member: int) -> Any:
    """The samples of one member: each has its share of every stretch, as in ``streams.owners``."""
    total = sum(weights)
    low, high = sum(weights[:member]) / total, sum(weights[: member + 1]) / total
    is_last = member == len(weights) - 1

    def owns(position: Any, sample: Any) -> Any:
        at = tf.math.floormod(tf.cast(position, tf.float64) * EVEN, 1.0)
        return (at >= low) & ((at < high) | is_last)

    return dataset.enumerate().filter(owns).map(lambda position, sample: sample)
