"""Of each variable goes what is near its largest entry, and as much of it as the link can take."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from backends.frameworks.layout import Variable
from backends.strategies.compressors.max_n import LEAST, MaxN
from backends.strategies.message import DENSE, SPARSE, bytes_of
from tests.backends.strategies.vectors import floats, one_variable

TWO = (Variable("kernel", (2, 3), 0, 6), Variable("bias", (8,), 6, 8))


def budget(size, entries):
    """Bytes that so many entries take at most."""
    return bytes_of(SPARSE, size, size, size) - 8 * (size - entries)


def test_each_variable_has_its_own_maximum_and_keeps_its_own_rest():
    compressor = MaxN(TWO, n=10)
    message = compressor.compress(floats(10, -9.5, 8, 1, 0, 2, 1, 0.5, 0.95, 0, 0, 0, 0, 0.2))
    np.testing.assert_array_equal(message.arrays[0], [0, 1, 6, 8])
    np.testing.assert_array_equal(message.arrays[1], floats(10, -9.5, 1, 0.95))
    np.testing.assert_array_equal(compressor.residual(), floats(0, 0, 8, 1, 0, 2, 0, 0.5, 0, 0, 0, 0, 0, 0.2))

    message = compressor.compress(np.zeros(14, np.float32))
    np.testing.assert_array_equal(message.arrays[0], [2, 7])


def test_one_sends_what_is_within_a_hundredth_of_the_maximum():
    message = MaxN(one_variable(6), n=1).compress(floats(1, 2, 100, 98, -99.5, 3))
    np.testing.assert_array_equal(message.arrays[0], [2, 4])


def test_a_hundred_sends_everything():
    compressor = MaxN(one_variable(6), n=100)
    assert compressor.compress(floats(0, 1, 0, 2, 0, 3)).kind == DENSE
    assert not compressor.residual().any()


def test_of_equal_ones_that_do_not_all_fit_none_goes():
    compressor = MaxN(one_variable(10))
    message = compressor.compress(floats(10, 8, 8, 8, 1, 1, 1, 1, 1, 1), budget(10, 3))
    np.testing.assert_array_equal(message.arrays[0], [0])


@settings(max_examples=80, deadline=None)
@given(size=some.integers(1, 300), share=some.floats(0, 1.2), seed=some.integers(0, 100))
def test_a_message_fits_its_budget_unless_n_is_at_its_least_and_another_entry_would_not(size, share, seed):
    compressor = MaxN(one_variable(size))
    limit = share * bytes_of(DENSE, size, size)
    values = np.random.default_rng(seed).permutation(np.arange(1, size + 1)).astype(np.float32)
    message = compressor.compress(values, limit)
    n = compressor.metrics()["n"]
    assert message.traffic_bytes <= limit or n == pytest.approx(LEAST)
    digits = 2 * len(str(size))  # that a longer head may have
    assert message.kind == DENSE or n == pytest.approx(LEAST) or message.traffic_bytes + 8 + digits > limit


def test_a_larger_n_costs_more():
    costs = [MaxN(one_variable(10_000), n=n).traffic_bytes() for n in (0.85, 5, 10, 50, 90, 100)]
    assert costs == sorted(costs)
    assert costs[0] < costs[-1] / 100


PLACES = (("a", 0, 60_000), ("b", 60_000, 40_000), ("c", 100_000, 9))
LAYERS = tuple(Variable(name, (size,), start, size) for name, start, size in PLACES)


def large(seed):
    """Values large enough to be sampled, and how near each is to the largest of its variable.

    Two variables differ in scale, and one is all zeros.
    """
    random = np.random.default_rng(seed)
    drawn = [random.normal(size=60_000), 50 * random.normal(size=40_000), np.zeros(9)]
    values = np.concatenate(drawn).astype(np.float32)
    near = np.abs(values)
    for layer in LAYERS[:2]:
        part = near[layer.start : layer.start + layer.size]
        part /= part.max()
    return values, near


@settings(max_examples=30, deadline=None)
@given(entries=some.sampled_from([4_000, 9_000, 40_000]), seed=some.integers(0, 50))
def test_a_large_message_is_nearly_full_and_has_none_but_the_nearest(entries, seed):
    values, near = large(seed)
    chosen = MaxN(LAYERS).compress(values, budget(100_009, entries)).arrays[0]
    assert 0.85 * entries <= chosen.size <= entries
    assert near[chosen].min() > np.delete(near, chosen).max()


def test_n_is_never_below_its_least_in_a_large_message_either():
    """All are near the largest, so that all go, whatever there is room for."""
    values = np.linspace(0.995, 1.0, 100_009, dtype=np.float32)
    compressor = MaxN(one_variable(100_009))
    assert compressor.compress(values, budget(100_009, 40_000)).kind == DENSE
    assert compressor.metrics()["n"] == pytest.approx(LEAST)


@settings(max_examples=20, deadline=None)
@given(entries=some.sampled_from([0, 1, 400, 3_000]), seed=some.integers(0, 50))
def test_what_a_sample_finds_is_what_all_entries_would(entries, seed):
    """A link with room for so many."""
    values, near = large(seed)
    message = MaxN(LAYERS).compress(values, budget(100_009, entries))
    beyond = np.sort(near)[near.size - entries - 1]
    floor = min(float(np.nextafter(beyond, np.float32(2))), 1 - LEAST / 100)
    np.testing.assert_array_equal(message.arrays[0], np.flatnonzero(near >= floor))
