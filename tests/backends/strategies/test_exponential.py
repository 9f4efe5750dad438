"""SGP's graph reaches everyone within one cycle; push-sum loses no mass and ends at the mean."""

from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from backends.strategies.exponential import absorb, estimate, halve, hop


def masses(n, seed=0, size=3):
    return list(np.random.default_rng(seed).normal(size=(n, size)).astype(np.float32)), [1.0] * n


def halves(xs, ws):
    """Halve all in place; the halves to be sent."""
    for rank, x in enumerate(xs):
        ws[rank] = halve(x, ws[rank])
    return [(x.copy(), w) for x, w in zip(xs, ws, strict=True)]


def deliver(xs, ws, sent, step):
    n = len(xs)
    for rank, x in enumerate(xs):
        ws[rank] = absorb(x, ws[rank], *sent[(rank - hop(n, step)) % n])


def estimates(xs, ws):
    zs = [np.empty_like(x) for x in xs]
    for x, w, z in zip(xs, ws, zs, strict=True):
        estimate(x, w, z)
    return zs


@pytest.mark.parametrize(
    ("n", "cycle"),
    [(2, [1]), (3, [1, 2]), (4, [1, 2]), (5, [1, 2, 4]), (6, [1, 2, 4]), (8, [1, 2, 4]), (9, [1, 2, 4, 8])],
)
def test_hops_are_the_powers_of_two_below_n_in_turn(n, cycle):
    assert [hop(n, step) for step in range(2 * len(cycle))] == cycle * 2


@pytest.mark.parametrize("n", range(2, 40))
def test_within_one_cycle_everyone_hears_of_everyone(n):
    heard = [{rank} for rank in range(n)]
    for step in range((n - 1).bit_length()):
        assert 0 < hop(n, step) < n
        heard = [heard[rank] | heard[(rank - hop(n, step)) % n] for rank in range(n)]
    assert all(len(each) == n for each in heard)


def test_two_workers_meet_in_the_middle():
    xs, ws = [np.array([1.0], np.float32), np.array([3.0], np.float32)], [1.0, 1.0]
    sent = halves(xs, ws)
    assert [(x.tolist(), w) for x, w in sent] == [([0.5], 0.5), ([1.5], 0.5)]
    deliver(xs, ws, sent, 0)
    assert [x.tolist() for x in xs] == [[2.0], [2.0]]
    assert ws == [1.0, 1.0]


@pytest.mark.parametrize("n", [2, 4, 8, 16])
def test_a_power_of_two_has_the_exact_mean_after_one_cycle(n):
    xs, ws = [np.array([rank, 10 * rank], np.float32) for rank in range(n)], [1.0] * n
    for step in range((n - 1).bit_length()):
        deliver(xs, ws, halves(xs, ws), step)
    assert all(x.tolist() == [(n - 1) / 2, 5 * (n - 1)] for x in xs)
    assert ws == [1.0] * n


@pytest.mark.parametrize("n", range(2, 17))
def test_any_number_comes_to_the_mean(n):
    xs, ws = masses(n, seed=n)
    mean = np.mean(xs, axis=0)
    for step in range(60):
        deliver(xs, ws, halves(xs, ws), step)
    for z in estimates(xs, ws):
        np.testing.assert_allclose(z, mean, atol=1e-5)


def test_with_messages_two_steps_late_weights_tell_what_is_still_on_its_way():
    xs, ws = masses(5)
    mean = np.mean(xs, axis=0)
    on_the_way = deque()
    for step in range(600):
        on_the_way.append((halves(xs, ws), step))
        if len(on_the_way) > 2:
            deliver(xs, ws, *on_the_way.popleft())
    assert ws == pytest.approx([0.5] * 5)
    for x, z in zip(xs, estimates(xs, ws), strict=True):
        np.testing.assert_allclose(z, mean, atol=1e-3)
        np.testing.assert_allclose(x, 0.5 * mean, atol=1e-3)


@settings(max_examples=60, deadline=None)
@given(
    n=some.integers(1, 6),
    seed=some.integers(0, 100),
    events=some.lists(some.tuples(some.booleans(), some.integers(0, 5), some.integers(0, 5)), max_size=40),
)
def test_whoever_sends_when_to_whom_no_mass_is_lost(n, seed, events):
    xs, ws = masses(n, seed)
    total = np.sum(xs, axis=0)
    on_the_way = []
    for arrives, one, other in events:
        if not arrives:
            ws[one % n] = halve(xs[one % n], ws[one % n])
            on_the_way.append((xs[one % n].copy(), ws[one % n]))
        elif on_the_way:
            ws[other % n] = absorb(xs[other % n], ws[other % n], *on_the_way.pop(one % len(on_the_way)))
        np.testing.assert_allclose(np.sum(xs + [x for x, _ in on_the_way], axis=0), total, atol=1e-4)
        assert sum(ws) + sum(w for _, w in on_the_way) == pytest.approx(n)


def test_one_with_all_the_mass_of_x_and_w_estimates_the_mean():
    z = np.zeros(2, np.float32)
    estimate(np.array([6.0, 3.0], np.float32), 3.0, z)
    assert z.tolist() == [2.0, 1.0]
