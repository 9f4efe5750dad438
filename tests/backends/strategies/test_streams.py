"""Streams: batches, weights and learning rates follow the rates, and buffers behave as promised."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from backends.strategies.streams import (
    DISTRIBUTIONS,
    Persistence,
    Truncation,
    batches,
    draw_rates,
    rate_factor,
    shared,
    shares,
    sharing,
)


def numbers(*values):
    return np.array(values, np.int64)


@pytest.mark.parametrize("name", sorted(DISTRIBUTIONS))
def test_rates_have_the_mean_and_deviation_of_the_papers_table(name):
    rates = draw_rates(name, 20000, seed=7)
    _, mean, deviation = DISTRIBUTIONS[name]
    assert np.mean(rates) == pytest.approx(mean, rel=0.02)
    assert np.std(rates) == pytest.approx(deviation, rel=0.03)
    assert min(rates) >= 1


def test_a_uniform_distribution_has_bounds():
    rates = draw_rates("S2", 1000, seed=7)
    assert 300 - 112 * 3**0.5 <= min(rates) < max(rates) <= 300 + 112 * 3**0.5


def test_rates_come_from_their_seed():
    assert draw_rates("S1'", 5, seed=1) == draw_rates("S1'", 5, seed=1)
    assert draw_rates("S1'", 5, seed=1) != draw_rates("S1'", 5, seed=2)


def test_an_unknown_distribution_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="unknown distribution of stream rates 'S3'; known: S1, S2, S1', S2'"):
        draw_rates("S3", 5, seed=1)


def test_a_batch_is_what_arrives_in_a_second():
    assert batches([10.0, 30.4, 30.5, 0.2]) == [10, 30, 31, 1]


def test_gradients_weigh_as_much_as_their_streams():
    assert shares([10.0, 30.0]) == [0.25, 0.75]


def test_the_learning_rate_grows_with_the_streams():
    assert rate_factor([10.0, 30.0], 20) == 2.0


def test_persistence_keeps_every_sample_in_order():
    buffer = Persistence()
    buffer.arrive(numbers(1, 2, 3))
    np.testing.assert_array_equal(buffer.take(2), [1, 2])
    buffer.arrive(numbers(4))
    np.testing.assert_array_equal(buffer.take(5), [3, 4])
    assert buffer.take(1).size == 0


def test_truncation_keeps_the_newest_second():
    buffer = Truncation(rate=3)
    buffer.arrive(numbers(1, 2))
    buffer.arrive(numbers(3, 4, 5))
    np.testing.assert_array_equal(buffer.take(2), [3, 4])
    assert len(buffer) == 1
    buffer.arrive(numbers(6, 7, 8))
    np.testing.assert_array_equal(buffer.take(9), [6, 7, 8])


@given(rate=some.floats(0.1, 20.0), arrivals=some.lists(some.integers(0, 30), max_size=10))
def test_truncation_needs_the_space_of_one_second_and_persistence_that_of_all(rate, arrivals):
    everything, newest = Persistence(), Truncation(rate)
    for count in arrivals:
        everything.arrive(np.arange(count))
        newest.arrive(np.arange(count))
    assert len(everything) == sum(arrivals)
    assert len(newest) == min(sum(arrivals), int(np.ceil(rate)))


@pytest.mark.parametrize("make", [Persistence, lambda: Truncation(3)])
def test_a_restored_buffer_goes_on_as_the_saved_one(make):
    saved, restored = make(), make()
    saved.arrive(numbers(1, 2, 3))
    restored.arrive(numbers(9))
    restored.restore(saved.state())
    saved.arrive(numbers(4))
    restored.arrive(numbers(4))
    np.testing.assert_array_equal(restored.take(9), saved.take(9))


def test_the_state_of_something_else_is_refused():
    with pytest.raises(ValueError, match="not the state of a stream's buffer"):
        Persistence().restore((np.zeros((2, 2)),))


@pytest.mark.parametrize(
    ("devices", "alpha", "count"), [(16, 0.5, 8), (16, 0.25, 4), (16, 0.1, 2), (16, 0.05, 1), (3, 0.01, 1), (9, 0, 0)]
)
def test_a_fraction_of_the_devices_shares_but_one_at_least(devices, alpha, count):
    chosen = sharing(devices, alpha, seed=(7, 3))
    assert len(set(chosen)) == len(chosen) == count
    assert list(chosen) == sorted(chosen)
    assert all(0 <= device < devices for device in chosen)


def test_who_shares_comes_from_the_seed_and_changes_with_it():
    drawn = [sharing(8, 0.25, seed=(7, step)) for step in range(50)]
    assert drawn == [sharing(8, 0.25, seed=(7, step)) for step in range(50)]
    assert {device for chosen in drawn for device in chosen} == set(range(8))


@pytest.mark.parametrize(("beta", "count"), [(0.0, 0), (0.05, 3), (0.5, 32), (1.0, 64)])
def test_a_fraction_of_the_samples_is_shared(beta, count):
    samples = np.arange(100, 164)
    found = shared(samples, beta, seed=(7, 3, 0))
    assert len(found) == count
    assert set(found) <= set(samples)
    assert list(found) == sorted(set(found))


@pytest.mark.parametrize("fraction", [-0.1, 1.1, float("nan")])
def test_what_is_no_fraction_is_refused(fraction):
    with pytest.raises(ValueError, match="between 0 and 1"):
        sharing(4, fraction, seed=1)
    with pytest.raises(ValueError, match="between 0 and 1"):
        shared(np.arange(4), fraction, seed=1)
