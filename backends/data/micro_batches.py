"""A batch that does not fit into memory at once is computed in parts (gradient accumulation)."""

from typing import Any, NamedTuple, Tuple

from backends.data.loader import BatchSource


class BatchPart(NamedTuple):
    """A part of a batch, with its number of samples."""

    samples: int
    batch: Any


class SplitBatch(NamedTuple):
    """A batch in parts, each of which a model takes as a batch."""

    parts: Tuple[BatchPart, ...]


def parts_of(batch: Any) -> Tuple[BatchPart, ...]:
    """The parts of a batch; a whole one is one part."""
    return batch.parts if isinstance(batch, SplitBatch) else (BatchPart(1, batch),)


def padded(batch: SplitBatch, count: int) -> SplitBatch:
    """The batch with so many parts: the last one follows again, and does not count."""
    return SplitBatch(batch.parts + (BatchPart(0, batch.parts[-1].batch),) * (count - len(batch.parts)))


class MicroBatchLoader(BatchSource):
    """The batches of a source in parts of at most ``most`` samples, as equal as they can be."""

    def __init__(self, source: BatchSource, most: int) -> None:
        self._source = source
        self._most = most
        self.batch = source.batch
        self.arrivals = source.arrivals
        self.injection = source.injection

    def __next__(self) -> SplitBatch:
        self._source.batch = self.batch
        return SplitBatch(tuple(BatchPart(*part) for part in self._source.parts(self._most)))

    def put_back(self) -> None:
        self._source.put_back()

    def close(self) -> None:
        self._source.close()


def in_parts(source: BatchSource, most: int) -> BatchSource:
    """The source with batches in parts of at most ``most`` samples; itself for 0."""
    return MicroBatchLoader(source, most) if most else source
