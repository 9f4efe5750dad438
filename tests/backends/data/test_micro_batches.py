"""A batch in parts holds the samples of the whole one, in their order."""

import numpy as np
import pytest

from backends.data.background import BackgroundLoader
from backends.data.loader import ArraySamples, BatchLoader
from backends.data.micro_batches import BatchPart, SplitBatch, in_parts, parts_of
from backends.data.sequential_samples import SampleStream


def loader(batch: int) -> BatchLoader:
    return BatchLoader(ArraySamples(np.arange(23)), batch, seed=3)


@pytest.mark.parametrize(
    ("batch", "most", "sizes"), [(8, 4, (4, 4)), (8, 3, (3, 3, 2)), (8, 8, (8,)), (8, 100, (8,)), (5, 1, (1,) * 5)]
)
def test_parts_are_as_large_as_allowed_and_the_last_is_the_rest(batch, most, sizes) -> None:
    split, whole = in_parts(loader(batch), most), loader(batch)
    for _ in range(5):  # across the end of an epoch
        parts = parts_of(next(split))
        assert tuple(part.samples for part in parts) == sizes
        np.testing.assert_array_equal(np.concatenate([part.batch[0] for part in parts]), next(whole)[0])


def test_a_stream_is_split_and_read_ahead_too() -> None:
    split = BackgroundLoader(in_parts(SampleStream(lambda: iter(range(10)), list).loader(5), 2))
    assert next(split) == SplitBatch((BatchPart(2, [0, 1]), BatchPart(2, [2, 3]), BatchPart(1, [4])))
    assert [part.batch for part in next(split).parts] == [[5, 6], [7, 8], [9]]
