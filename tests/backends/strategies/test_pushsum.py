"""Push-sum finds the mean over a directed graph, and loses nothing on the way."""

from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from backends.strategies.pushsum import PushSum
from backends.strategies.topologies.graphs import hop


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


def test_it_starts_from_its_own_weights():
    weights = np.array([3, 4], np.float32)
    worker = PushSum(weights)
    worker.x += 1
    np.testing.assert_array_equal(weights, [3, 4])
    z = np.empty(2, np.float32)
    worker.debias(z)
    np.testing.assert_array_equal(z, [4, 5])


def test_what_is_shared_is_also_kept():
    (worker,) = workers(6)
    x, weight = worker.share()
    assert (float(x[0]), weight) == (3.0, 0.5)
    assert (float(worker.x[0]), worker.weight) == (3.0, 0.5)


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


@pytest.mark.parametrize("n", range(2, 17))
def test_any_number_comes_to_the_mean_over_the_exponential_graph(n):
    group = workers(*range(n))
    for step in range(60):
        around(group, step)
    assert [debiased(worker) for worker in group] == pytest.approx([(n - 1) / 2] * n, abs=1e-4)


def test_with_messages_two_steps_late_weights_tell_what_is_still_on_its_way():
    group = workers(0, 1, 2, 3, 4)
    on_the_way = deque()
    for step in range(600):
        shares = [worker.share() for worker in group]
        on_the_way.append([(x.copy(), weight, (rank + hop(5, step)) % 5) for rank, (x, weight) in enumerate(shares)])
        if len(on_the_way) > 2:
            for x, weight, target in on_the_way.popleft():
                group[target].take(x, weight)
    assert [worker.weight for worker in group] == pytest.approx([0.5] * 5)
    assert [debiased(worker) for worker in group] == pytest.approx([2.0] * 5, abs=1e-3)


def test_it_finds_the_mean_even_where_one_shares_less_often_than_the_others():
    group = workers(0, 3, 9)
    for round_ in range(60):
        pass_on(group, [(rank, (rank + 1) % 3) for rank in range(3) if rank or round_ % 2])
    assert [debiased(worker) for worker in group] == pytest.approx([4, 4, 4], abs=1e-4)


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
