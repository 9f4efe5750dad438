"""A batch in parts holds the samples of the whole one, in their order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.data.background import BackgroundLoader
from backends.data.loader import ArraySamples, BatchLoader, part_sizes
from backends.data.micro_batches import BatchPart, SplitBatch, in_parts, padded, parts_of
from backends.data.sequential_samples import SampleStream


def loader(batch: int) -> BatchLoader:
    return BatchLoader(ArraySamples(np.arange(23)), batch, seed=3)


@pytest.mark.parametrize(
    ("batch", "most", "sizes"),
    [
        (8, 4, (4, 4)),
        (8, 3, (3, 3, 2)),
        (8, 8, (8,)),
        (8, 100, (8,)),
        (5, 1, (1,) * 5),
        (9, 8, (5, 4)),
        (10, 3, (3, 3, 2, 2)),
    ],
)
def test_parts_are_the_fewest_and_alike(batch, most, sizes) -> None:
    split, whole = in_parts(loader(batch), most), loader(batch)
    for _ in range(5):  # across the end of an epoch
        parts = parts_of(next(split))
        assert tuple(part.samples for part in parts) == sizes
        np.testing.assert_array_equal(np.concatenate([part.batch[0] for part in parts]), next(whole)[0])


@given(st.integers(2, 600), st.integers(3, 600))
def test_no_part_is_of_one_sample(samples: int, most: int) -> None:
    sizes = part_sizes(samples, most)
    assert sum(sizes) == samples and len(sizes) == -(-samples // most)
    assert 2 <= min(sizes) <= max(sizes) <= min(most, min(sizes) + 1)


def test_a_batch_of_fewer_parts_repeats_its_last_one_for_nothing() -> None:
    batch = SplitBatch((BatchPart(3, "first"), BatchPart(2, "last")))
    assert padded(batch, 2) == batch
    assert padded(batch, 4).parts == (*batch.parts, BatchPart(0, "last"), BatchPart(0, "last"))


def test_33_samples_in_parts_of_32_are_17_and_16() -> None:
    assert part_sizes(33, 32) == [17, 16]


def test_a_stream_is_split_and_read_ahead_too() -> None:
    split = BackgroundLoader(in_parts(SampleStream(lambda: iter(range(10)), list).loader(5), 2))
    assert next(split) == SplitBatch((BatchPart(2, [0, 1]), BatchPart(2, [2, 3]), BatchPart(1, [4])))
    assert [part.batch for part in next(split).parts] == [[5, 6], [7, 8], [9]]
