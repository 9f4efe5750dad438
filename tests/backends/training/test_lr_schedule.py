"""Learning-rate schedules, by their exact values."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from backends.training.lr_schedule import KINDS, RateSchedule


def factors(kind, steps, warmup=0):
    chosen = RateSchedule(kind, steps, warmup)
    return [chosen.factor(step) for step in range(steps)]


def test_cosine_falls_along_half_a_cosine():
    assert factors("cosine", 4) == pytest.approx([1.0, 0.5 + 0.5**1.5, 0.5, 0.5 - 0.5**1.5])
    assert RateSchedule("cosine", 4).factor(4) == pytest.approx(0.0)


def test_steps_divide_by_ten_after_half_and_three_quarters():
    assert factors("step", 8) == [1.0] * 4 + [0.1] * 2 + [0.01] * 2


def test_the_warm_up_rises_linearly_to_the_full_rate():
    assert factors("constant", 6, 4) == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]


@given(
    kind=some.sampled_from(KINDS), steps=some.integers(0, 100), warmup=some.integers(0, 20), step=some.integers(0, 200)
)
def test_a_factor_lies_between_nothing_and_the_full_rate(kind, steps, warmup, step):
    assert 0.0 <= RateSchedule(kind, steps, warmup).factor(step) <= 1.0
