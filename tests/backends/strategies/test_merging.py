"""Gradients and weights are merged as the equations of the papers say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from backends.optimise import BLOCK
from backends.strategies.merging import (
    average,
    average_pair,
    average_segments,
    batch_factors,
    mean_update,
    update,
    weighted_update,
)


def flat(*values):
    return np.array(values, np.float32)


def test_equation_4():
    weights = flat(1, 2)
    mean_update(weights, [flat(1, 0), flat(3, 4)], rate=0.5)
    np.testing.assert_array_equal(weights, [0, 1])


def test_gradients_that_have_their_rate_need_no_other():
    weights = flat(1, 2)
    mean_update(weights, [flat(1, 0), flat(3, 4)])
    np.testing.assert_array_equal(weights, [-1, 0])


@pytest.mark.parametrize(("k", "expected"), [(0, [-1.5, -1.0]), (1, [1 / 6, 1.0])])
def test_equation_7(k, expected):
    weights = flat(1, 2)
    weighted_update(weights, [flat(1, 0), flat(3, 4)], [1, 3], k, rate=0.5)
    np.testing.assert_allclose(weights, expected, rtol=1e-6)


def test_the_factors_of_equation_7_compare_batches_with_ones_own():
    assert batch_factors([8, 16, 24], 1) == pytest.approx([0.5 / 3, 1 / 3, 1.5 / 3])


@settings(max_examples=40, deadline=None)
@given(
    size=some.sampled_from([0, 1, 7, BLOCK + 1]),
    workers=some.integers(1, 6),
    batch=some.integers(1, 512),
    seed=some.integers(0, 1000),
)
def test_equation_7_with_equal_batches_is_equation_4(size, workers, batch, seed):
    random = np.random.default_rng(seed)
    weights = random.normal(size=size).astype(np.float32)
    gradients = random.normal(size=(workers, size)).astype(np.float32)
    weighted = weights.copy()
    mean_update(weights, gradients, rate=0.1)
    weighted_update(weighted, gradients, [batch] * workers, workers - 1, rate=0.1)
    np.testing.assert_array_equal(weighted, weights)


def test_an_update_reaches_every_block_and_leaves_the_gradients_alone():
    weights, gradient = np.ones(2 * BLOCK + 1, np.float32), np.full(2 * BLOCK + 1, 2, np.float32)
    update(weights, [gradient, gradient], [0.25, 0.75], rate=0.5)
    np.testing.assert_array_equal(weights, 0)
    np.testing.assert_array_equal(gradient, 2)


def test_averaging_meets_in_the_middle():
    weights, received = flat(0, 2, -4), flat(4, 2, 2)
    average(weights, received)
    np.testing.assert_array_equal(weights, [2, 2, -1])
    np.testing.assert_array_equal(received, [4, 2, 2])


def test_segments_are_averaged_each_with_its_own_peers():
    weights = flat(0, 2, 4, 6, 8)
    average_segments(weights, [(0, 2), (3, 5)], [flat(2, 4), flat(0, 0)])
    np.testing.assert_array_equal(weights, [1, 3, 4, 3, 4])


@given(
    values=some.lists(some.integers(-100, 100), min_size=2, max_size=8),
    distance=some.integers(1, 7),
)
def test_where_everybody_sends_one_and_receives_one_the_mean_over_workers_stays(values, distance):
    workers = [flat(value) for value in values]
    sent = [worker.copy() for worker in workers]
    for rank, worker in enumerate(workers):
        average(worker, sent[(rank + distance) % len(workers)])
    assert sum(float(worker[0]) for worker in workers) == sum(values)


def test_a_pair_becomes_equal_and_its_sum_stays():
    active, passive = flat(1, 5), flat(3, -5)
    average_pair(active, passive)
    np.testing.assert_array_equal(active, [2, 0])
    np.testing.assert_array_equal(passive, [2, 0])
