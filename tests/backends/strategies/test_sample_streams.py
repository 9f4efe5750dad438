"""Rates of streams are those of the paper's table, and batches follow them."""

import numpy as np
import pytest

from backends.strategies.sample_streams import DISTRIBUTIONS, draw_rate, drawn_batch


@pytest.mark.parametrize("name", sorted(DISTRIBUTIONS))
def test_rates_have_the_mean_and_deviation_of_the_papers_table(name):
    rates = [draw_rate(name, f"d{device}", seed=7) for device in range(4000)]
    _, mean, deviation = DISTRIBUTIONS[name]
    assert np.mean(rates) == pytest.approx(mean, rel=0.03)
    assert np.std(rates) == pytest.approx(deviation, rel=0.03)
    assert min(rates) >= 1


def test_a_uniform_distribution_has_bounds():
    rates = [draw_rate("S2", f"d{device}", seed=7) for device in range(1000)]
    assert 300 - 112 * 3**0.5 <= min(rates) < max(rates) <= 300 + 112 * 3**0.5


def test_rates_come_from_their_device_and_their_seed():
    assert draw_rate("S1'", "pc", seed=1) == draw_rate("S1'", "pc", seed=1)
    assert len({draw_rate("S1'", device, seed) for device in ("pc", "tx2") for seed in (1, 2)}) == 4


def test_a_drawn_batch_is_what_would_arrive_in_a_second():
    for device in "abcdefgh":
        assert drawn_batch(device, 3) == max(1, int(draw_rate("S1", device, 3) + 0.5))
