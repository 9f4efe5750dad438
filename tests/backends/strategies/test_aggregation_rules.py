"""Gradients and weights are merged as the equations of the papers say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from backends.strategies.aggregation_rules import FACTORS, MOST, PushSum, average, average_pair
from backends.strategies.topologies.graphs import hop

SAMPLES = some.integers(1, 512)


def flat(*values):
    return np.array(values, np.float32)


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


def test_averaging_meets_in_the_middle():
    weights, received = flat(0, 2, -4), flat(4, 2, 2)
    average(weights, received)
    np.testing.assert_array_equal(weights, [2, 2, -1])
    np.testing.assert_array_equal(received, [4, 2, 2])


@given(values=some.lists(some.integers(-100, 100), min_size=2, max_size=8), distance=some.integers(1, 7))
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


def workers(*values):
    return [PushSum(np.array([value], np.float32)) for value in values]


def pass_on(group, edges):
    """Everybody in ``edges`` shares with one peer, at once."""
    shares = []
    for source, target in edges:
        x, weight = group[source].share()
        shares.append((target, x.copy(), weight))
    for target, x, weight in shares:
        group[target].take(x, weight)


def debiased(worker):
    z = np.empty_like(worker.x)
    worker.debias(z)
    return float(z[0])


def test_two_peers_get_a_third_each_and_the_weight_takes_the_bias_away():
    a, b = workers(6, 3)
    x, weight = a.share(peers=2)
    b.take(x, weight)
    assert float(x[0]) == pytest.approx(2)
    assert b.weight == pytest.approx(4 / 3)
    assert debiased(b) == pytest.approx(5 / (4 / 3))
    assert debiased(a) == pytest.approx(6)


def around(group, step):
    """One step over the exponential graph."""
    pass_on(group, [(rank, (rank + hop(len(group), step)) % len(group)) for rank in range(len(group))])


@pytest.mark.parametrize("n", [2, 4, 8, 16])
def test_a_power_of_two_has_the_exact_mean_after_one_cycle_of_the_exponential_graph(n):
    group = workers(*range(n))
    for step in range((n - 1).bit_length()):
        around(group, step)
    assert [debiased(worker) for worker in group] == [(n - 1) / 2] * n
    assert [worker.weight for worker in group] == [1.0] * n


@given(
    values=some.lists(some.integers(0, 100), min_size=2, max_size=5),
    exchanges=some.lists(some.tuples(some.integers(0, 4), some.integers(0, 4)), max_size=10),
)
def test_mass_is_conserved_whoever_shares_with_whom(values, exchanges):
    group = workers(*values)
    for source, target in exchanges:
        pass_on(group, [(source % len(group), target % len(group))])
    assert sum(float(worker.x[0]) for worker in group) == sum(values)
    assert sum(worker.weight for worker in group) == len(group)


def test_a_restored_worker_is_as_the_saved_one():
    saved, restored = workers(6, 1)
    saved.share(peers=3)
    restored.restore(saved.state())
    assert (float(restored.x[0]), restored.weight) == (1.5, 0.25)
    restored.x += 1
    assert float(saved.x[0]) == 1.5


def test_the_state_of_another_model_is_refused():
    with pytest.raises(ValueError, match="not the push-sum state of 1 parameters"):
        workers(1)[0].restore(PushSum(np.zeros(2, np.float32)).state())
