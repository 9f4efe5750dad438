"""Gradients and weights are merged as the equations of the papers say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from backends.strategies import streams
from backends.strategies.aggregation import FACTORS, MOST, average, average_pair

SAMPLES = some.integers(1, 512)


def flat(*values):
    return np.array(values, np.float32)


def test_equation_4_is_the_mean():
    assert [FACTORS["mean"](batch, 8, 32, 4) for batch in (1, 8, 100)] == [0.25] * 3


def test_equation_7_compares_batches_with_ones_own():
    assert [FACTORS["weighted"](batch, 16, 32, 3) for batch in (8, 16, 24)] == pytest.approx([0.5 / 3, 1 / 3, 1.5 / 3])


@given(batch=SAMPLES, usual=SAMPLES, n=some.integers(1, 16))
def test_equation_7_with_equal_batches_is_equation_4(batch, usual, n):
    assert FACTORS["weighted"](batch, batch, usual, n) == FACTORS["mean"](batch, batch, usual, n)


@given(batches=some.lists(SAMPLES, min_size=1, max_size=8))
def test_a_server_with_the_mean_batch_for_its_own_weighs_each_sample_alike(batches):
    n = len(batches)
    factors = [FACTORS["weighted"](batch, sum(batches) / n, 32, n) for batch in batches]
    assert factors == pytest.approx([batch / sum(batches) for batch in batches])


@given(batches=some.lists(SAMPLES, min_size=1, max_size=16))
def test_by_samples_each_sample_weighs_alike_whoever_merges(batches):
    n, mean = len(batches), sum(batches) / len(batches)
    factors = [FACTORS["samples"](batch, mean, 32, n) for batch in batches]
    assert factors == pytest.approx([batch / sum(batches) for batch in batches])


@given(batches=some.lists(SAMPLES, min_size=2, max_size=16), own=SAMPLES)
def test_no_batch_is_so_small_that_a_step_is_more_than_8_times_as_long(batches, own):
    n = len(batches)
    assert sum(FACTORS["weighted"](batch, own, 32, n) for batch in batches) <= MOST * (1 + 1e-12)


def test_in_every_environment_of_the_paper_equation_7_is_as_it_stands():
    for cores in ([24, 24, 12, 12, 6, 6], [24, 24, 24, 24, 24, 4], [8, 8, 1, 1, 1, 1]):
        for own in cores:
            assert [FACTORS["weighted"](batch, own, 32, 6) for batch in cores] == [batch / own / 6 for batch in cores]


def test_one_sample_beside_hundreds_does_not_make_a_worker_overshoot():
    """Descent on w^2 / 2 at a rate of 0.2 leads to 0 for everyone.

    With Eq. 7 unbounded, w grows 26-fold a step.
    """
    batches, rate = [1, 200, 200], 0.2
    weight = unbounded = 1.0
    for _ in range(20):
        weight -= rate * sum(FACTORS["weighted"](batch, 1, 32, 3) for batch in batches) * weight
        unbounded -= rate * sum(batch / 1 / 3 for batch in batches) * unbounded
    assert abs(weight) < 0.1
    assert abs(unbounded) > 1e20


@given(rates=some.lists(SAMPLES, min_size=1, max_size=8), usual=SAMPLES)
def test_by_rates_is_each_one_s_share_of_all_samples_times_the_growth_of_the_rate(rates, usual):
    n = len(rates)
    grown = streams.rate_factor(rates, usual * n)
    expected = [share * grown for share in streams.shares(rates)]
    assert [FACTORS["rates"](rate, rates[0], usual, n) for rate in rates] == pytest.approx(expected)


def test_averaging_meets_in_the_middle():
    weights, received = flat(0, 2, -4), flat(4, 2, 2)
    average(weights, received)
    np.testing.assert_array_equal(weights, [2, 2, -1])
    np.testing.assert_array_equal(received, [4, 2, 2])


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
