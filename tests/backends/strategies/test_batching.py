"""Weighted dynamic batching grows the global batch as DLion says and deals it out by speed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from backends.strategies.batching import Cost, GlobalBatch, Growth, Throughput, local_batches, powers

EVERY_ITERATION = Growth(warmup_samples=4, warmup_every=1, speedup_every=1)


def sizes(controller, iterations):
    """The size of each iteration after the first."""
    seen = []
    for _ in range(iterations):
        controller.advance()
        seen.append(controller.size)
    return seen


def timed(*iterations, window=20):
    throughput = Throughput(window)
    for batch, seconds in iterations:
        throughput.add_iteration(batch, seconds)
    return throughput


def test_it_adds_until_beyond_one_percent_then_multiplies_until_beyond_ten():
    assert sizes(GlobalBatch(6, 1000, EVERY_ITERATION), 7) == [10, 14, 28, 56, 112, 112, 112]


def test_it_says_when_the_size_has_changed():
    controller = GlobalBatch(6, 1000, Growth(warmup_samples=4, warmup_every=2))
    assert [controller.advance() for _ in range(4)] == [False, True, False, True]


@pytest.mark.parametrize("iterations", range(9))
def test_a_restored_controller_goes_on_as_the_saved_one(iterations):
    growth = Growth(warmup_samples=4, warmup_every=2, speedup_every=3)
    saved, restored = GlobalBatch(6, 1000, growth), GlobalBatch(6, 1000, growth)
    sizes(saved, iterations)
    restored.restore(saved.state())
    assert restored.size == saved.size
    assert sizes(restored, 20) == sizes(saved, 20)


def test_the_state_of_something_else_is_refused():
    with pytest.raises(ValueError, match="not the state of a global batch"):
        GlobalBatch(6, 1000).restore((np.zeros(3),))
    with pytest.raises(ValueError, match="not the state of Throughput of the last 20"):
        Throughput().restore(Throughput(window=5).state())


def test_two_batch_sizes_show_the_fixed_part_and_the_cost_of_a_sample():
    cost = timed((10, 1.5), (20, 2.5)).cost()
    assert cost.fixed_s == pytest.approx(0.5)
    assert cost.sample_s == pytest.approx(0.1)


def test_least_squares_go_between_samples_that_scatter():
    cost = timed((10, 1.4), (10, 1.6), (20, 2.4), (20, 2.6)).cost()
    assert cost.fixed_s == pytest.approx(0.5)
    assert cost.sample_s == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("iterations", "sample_s"),
    [
        (((10, 2.0), (20, 1.0)), 40 / 500),  # more samples in less time
        (((10, 1.0), (20, 3.0)), 70 / 500),  # no samples in less than no time
        (((32, 1.0), (33, 2.0)), 98 / 2113),  # as good as one size
    ],
)
def test_where_a_line_would_make_no_sense_it_goes_through_the_origin(iterations, sample_s):
    cost = timed(*iterations).cost()
    assert cost.fixed_s == 0.0
    assert cost.sample_s == pytest.approx(sample_s)


def test_a_restored_throughput_goes_on_as_the_saved_one():
    saved, restored = timed((10, 1.0), (10, 2.0), (20, 3.0), window=2), Throughput(window=2)
    restored.restore(saved.state())
    saved.add_iteration(40, 5.0)
    restored.add_iteration(40, 5.0)
    assert restored.cost() == saved.cost() == timed((20, 3.0), (40, 5.0)).cost()


def test_without_an_iteration_there_is_no_cost():
    with pytest.raises(ValueError, match="no iteration has been timed yet"):
        Throughput().cost()


@pytest.mark.parametrize(("batch", "seconds"), [(0, 1.0), (1, 0.0), (1, float("nan")), (1, float("inf"))])
def test_an_iteration_that_cannot_be_is_refused(batch, seconds):
    with pytest.raises(ValueError, match="cannot take"):
        Throughput().add_iteration(batch, seconds)


def test_powers_let_all_workers_end_an_iteration_at_the_same_time():
    costs = [Cost(0.0, 0.01), Cost(0.5, 0.02)]
    found = powers(costs, 100)
    assert sum(found) == pytest.approx(100)
    assert [cost.fixed_s + cost.sample_s * power for cost, power in zip(costs, found, strict=True)] == pytest.approx(
        [5 / 6, 5 / 6]
    )


@pytest.mark.parametrize(
    ("global_batch", "rcp", "batches"),
    [
        (10, [3, 2, 1], [5, 3, 2]),  # 5, 3.33, 1.67
        (192, [1, 1, 1, 1, 1, 1], [32, 32, 32, 32, 32, 32]),
        (7, [2.0, 2.0], [4, 3]),  # a tie goes to the first
        (4, [1000, 1], [2, 2]),  # of one sample batch normalisation cannot learn
        (5, [0, 1], [2, 3]),
        (3, [100, 1, 1], [1, 1, 1]),
        (9, [0.5], [9]),
    ],
)
def test_equation_5(global_batch, rcp, batches):
    assert local_batches(global_batch, rcp) == batches


@given(
    rcp=some.lists(some.floats(0.0, 1e6), min_size=1, max_size=12).filter(lambda rcp: sum(rcp) > 1e-3),
    more=some.integers(0, 5000),
)
def test_local_batches_sum_to_the_global_one_and_none_is_empty(rcp, more):
    global_batch = len(rcp) + more
    batches = local_batches(global_batch, rcp)
    assert sum(batches) == global_batch
    assert min(batches) >= min(2, global_batch // len(rcp))
    shares = [global_batch * power / sum(rcp) for power in rcp]
    if min(shares) > 2.001:
        assert all(abs(batch - share) < 1.001 for batch, share in zip(batches, shares, strict=True))


def test_a_global_batch_smaller_than_the_fleet_is_refused():
    with pytest.raises(ValueError, match="a global batch of 3 leaves nothing for some of 4 workers"):
        local_batches(3, [1, 1, 1, 1])


@pytest.mark.parametrize("rcp", [[], [0.0, 0.0], [1.0, -1.0], [1.0, float("nan")], [1.0, float("inf")]])
def test_powers_that_give_no_proportion_are_refused(rcp):
    with pytest.raises(ValueError, match="need some that are positive"):
        local_batches(8, rcp)
