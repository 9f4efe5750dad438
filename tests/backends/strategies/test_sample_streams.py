"""Rates of streams are those of the paper's table, and batches follow them."""

import numpy as np
import pytest

from backends.strategies.sample_streams import DISTRIBUTIONS, batches, draw_rates


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


def test_a_batch_is_what_arrives_in_a_second():
    assert batches([10.0, 30.4, 30.5, 0.2]) == [10, 30, 31, 1]
