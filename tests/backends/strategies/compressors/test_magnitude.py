"""What is found block by block is what would be found at once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from backends.strategies.compressors.magnitude import BLOCK, above, greatest, largest, likely, total

SIZES = (1, 7, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 5)


def drawn(size, seed):
    return np.random.default_rng(seed).normal(size=size).astype(np.float32)


@settings(max_examples=40, deadline=None)
@given(size=some.sampled_from(SIZES), floor=some.floats(0, 4), seed=some.integers(0, 100))
def test_blocks_make_no_difference(size, floor, seed):
    values = drawn(size, seed)
    before, floor = values.copy(), np.float32(floor)
    np.testing.assert_array_equal(above(values, floor), np.flatnonzero(np.abs(values) >= floor))
    assert greatest(values) == np.abs(values).max()
    assert total(values) == pytest.approx(float(np.abs(values).sum()), rel=1e-5)
    np.testing.assert_array_equal(values, before)


def test_of_nothing_there_is_nothing():
    nothing = np.empty(0, np.float32)
    assert (total(nothing), greatest(nothing), above(nothing, 0.0).size) == (0.0, 0.0, 0)


@settings(max_examples=40, deadline=None)
@given(
    size=some.sampled_from([1, 2, 50, 40_000]),  # the last is large enough to be sampled
    share=some.sampled_from([0.0, 0.001, 0.1, 0.7, 1.0]),
    spread=some.sampled_from([0, 1, 5]),
    seed=some.integers(0, 100),
)
def test_largest_finds_what_sorting_would(size, share, spread, seed):
    values = (np.random.default_rng(seed).normal(size=size) ** spread).astype(np.float32)
    magnitudes = np.abs(values)
    count = max(1, int(share * size))
    found = largest(values, count)
    assert found.size == count
    assert np.all(np.diff(found) > 0)
    np.testing.assert_array_equal(np.sort(magnitudes[found]), np.sort(magnitudes)[size - count :])


def test_a_sample_that_misleads_does_no_harm():
    magnitudes = np.zeros(40_000, np.float32)
    magnitudes[::2] = 1  # all that the sample sees
    magnitudes[1::40] = 2  # 1000 that it does not
    np.testing.assert_array_equal(largest(magnitudes, 1000), np.arange(1, 40_000, 40))

    magnitudes = np.zeros(70_000, np.float32)
    magnitudes[::4] = np.arange(1, 17_501)  # large only where the sample looks: fewer than it makes one expect
    np.testing.assert_array_equal(largest(magnitudes, 1000), np.arange(0, 70_000, 4)[-1000:])


def test_a_sample_says_what_a_few_more_than_were_asked_for_exceed():
    assert likely(np.arange(1000, dtype=np.float32)[::-1].copy(), 100) == 1000 - (100 + 4 * 10) - 16
    assert likely(np.arange(100, dtype=np.float32), 60) == 0.0
