"""Statistics of step times equal exact cases; the warm-up test has these properties."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profilers import stats

SEEDS = st.integers(0, 10_000)


def noisy(seed, count, level=1.0, noise=0.02, amplitude=0.0, time_constant=1.0):
    steps = np.arange(count)
    decay = amplitude * noise * level * np.exp(-steps / time_constant)
    return level + decay + np.random.default_rng(seed).normal(0, noise * level, count)


def test_the_quantiles_are_those_of_the_tables():
    tables = {1: 12.706, 2: 4.303, 4: 2.776, 5: 2.571, 10: 2.228, 30: 2.042, 99: 1.984, 1000: 1.962}
    for freedom, quantile in tables.items():
        assert stats.student95(freedom) == pytest.approx(quantile, rel=2e-3)
    assert stats.student95(4.9) == stats.student95(4)
    with pytest.raises(ValueError, match="at least 1"):
        stats.student95(0.5)


def test_an_interval_of_independent_values_is_the_text_book_one():
    values = [10.0, 12.0] * 50  # neighbours differ: no positive autocorrelation
    assert stats.effective_count(values) == 100
    half = 1.984 * np.std(values, ddof=1) / 10
    assert stats.relative_interval95(values) == pytest.approx(half / 11, rel=1e-3)


def test_an_interval_is_unknown_below_two_values():
    assert stats.relative_interval95([3.0]) == math.inf
    assert stats.relative_interval95([]) == math.inf
    assert stats.relative_interval95([-1.0, 1.0]) == math.inf


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=50))
def test_the_effective_count_lies_between_two_and_the_count(values):
    assert 2 <= stats.effective_count(values) <= len(values)


def test_the_interval_of_correlated_steps_covers_the_mean():
    plain = covered = 0
    for seed in range(200):
        shocks = np.random.default_rng(seed).normal(size=300)
        values = [0.0]
        for shock in shocks:  # a first-order autoregression with r = 0.7 about 0
            values.append(0.7 * values[-1] + shock)
        plain += abs(np.mean(values)) <= 1.96 * np.std(values, ddof=1) / math.sqrt(len(values))
        covered += stats.relative_interval95(values) >= 1.0
    assert plain < 140
    assert covered > 180


@settings(deadline=None, max_examples=60)
@given(SEEDS, st.floats(1e-4, 0.2))
def test_steady_steps_end_the_warm_up_soon(seed, noise):
    values = noisy(seed, 160, noise=noise)
    ended = [count for count in range(161) if stats.warmup_ended(values[:count]) is not None]
    assert ended and ended[0] <= 120


@settings(deadline=None, max_examples=60)
@given(SEEDS, st.floats(8.0, 100.0), st.floats(2.0, 60.0))
def test_a_decay_ends_the_warm_up_once_within_the_noise_and_never_before(seed, amplitude, time_constant):
    within = math.ceil(time_constant * math.log(amplitude / 3.0))  # from here it is below three sigma
    values = noisy(seed, 3 * within + 400, amplitude=amplitude, time_constant=time_constant)
    assert all(stats.warmup_ended(values[:count]) is None for count in range(within))
    ended = [count for count in range(0, len(values), 10) if stats.warmup_ended(values[:count]) is not None]
    assert ended and ended[0] <= 3 * within + 200


def test_the_steps_before_a_jump_are_left_out():
    values = np.concatenate([noisy(1, 60), noisy(2, 80, level=1.5)])
    assert stats.warmup_ended(values) == 70
    assert stats.warmup_ended(values[:80]) is None
