"""Watts, gaps and errors of a window equal figures worked out by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profilers import energy
from profilers.energy import Span


def test_readings_of_a_counter_too_close_together_are_left_out():
    assert energy.sample_watts([0.0, 1.0, 2.0, 2.001], [0.0, 10.0, 30.0, 31.0], True) == [10.0, 20.0]
    assert energy.sample_watts([0.0, 1.0], [7.0, 9.0], False) == [7.0, 9.0]


def test_a_log_is_clipped_to_the_begin_of_the_window():
    found = energy.clip_to_begin(10.0, [(8.0, 1.0), (9.0, 2.0), (11.0, 4.0), (12.0, 8.0)])
    assert found == [(10.0, 3.0), (11.0, 4.0), (12.0, 8.0)]
    assert energy.clip_to_begin(10.0, [(11.0, 4.0), (12.0, 8.0)]) == [(11.0, 4.0), (12.0, 8.0)]
    assert energy.clip_to_begin(10.0, [(8.0, 1.0), (9.0, 2.0)]) == []


def test_gaps_are_longer_than_a_second_and_than_five_periods():
    times_s = [0.0, 0.1, 1.0, 3.0, 3.1]
    assert energy.gap_s(Span(0.0, 3.2, 0.1), times_s) == pytest.approx(2.0)
    assert energy.gap_s(Span(0.0, 3.2, 1.0), times_s) == 0.0
    assert energy.gap_s(Span(0.0, 9.1, 0.1), times_s) == pytest.approx(2.0 + 6.0)


def test_the_period_is_the_median_time_between_changes():
    values = [1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 1.0]
    assert energy.change_period_s(range(7), values) == 2.0
    assert energy.change_period_s(range(3), [1.0, 1.0, 2.0]) is None


def test_the_error_of_a_mean_falls_with_the_samples_and_grows_with_gaps():
    watts = [9.0, 11.0] * 50
    error = energy.relative_error(watts, 10.0, 0.0)
    assert error == pytest.approx(1.005 / 10 / 10, rel=1e-3)
    assert energy.relative_error(watts, 10.0, 0.5) == pytest.approx(0.5 * 1.005 / 10, rel=0.03)


def test_correlated_samples_increase_the_error():
    watts = np.repeat(np.random.default_rng(1).normal(10.0, 1.0, 20), 10)
    alone = energy.relative_error(watts[::10], 10.0, 0.0)
    assert 1.0 < energy.relative_error(watts, 10.0, 0.0) / alone < 1.8


def test_the_error_of_equal_samples_is_unknown():
    assert energy.relative_error([5.0] * 10, 5.0, 0.0) is None
    assert energy.relative_error([5.0], 5.0, 0.0) is None


@pytest.mark.parametrize("length_s, count", [(0.3, 0), (1.2, 1), (9.6, 10), (600.0, 60)])
def test_bins_last_about_a_second_and_are_sixty_at_most(length_s, count):
    assert energy.bin_count(Span(5.0, 5.0 + length_s, 0.1)) == count


def test_counters_are_averaged_by_bin():
    span = Span(0.0, 3.0, 0.5)
    assert energy.bin_means(span, [0.0, 0.5, 2.5], [1.0, 3.0, 5.0]) == (2.0, None, 5.0)


def test_watts_are_averaged_by_bin():
    span, times_s = Span(0.0, 3.0, 0.5), [0.0, 0.5, 1.5, 3.0]
    used_j = energy.cumulative_joules(times_s, [10.0, 10.0, 20.0, 20.0], False)
    assert energy.bin_watts(span, times_s, used_j) == pytest.approx((12.5, 17.5, 20.0))


def test_a_bin_without_a_sample_has_no_watts():
    span, times_s = Span(0.0, 3.0, 0.5), [0.0, 0.5, 2.5, 3.0]
    used_j = energy.cumulative_joules(times_s, [10.0] * 4, False)
    assert energy.bin_watts(span, times_s, used_j) == (10.0, None, 10.0)


@given(st.lists(st.tuples(st.floats(0.01, 2.0), st.floats(0.0, 100.0)), min_size=2, max_size=50))
def test_mean_watts_lie_between_the_lowest_and_the_highest(samples):
    times_s = np.cumsum([length for length, _ in samples]).tolist()
    watts = [value for _, value in samples]
    mean_w = energy.cumulative_joules(times_s, watts, False)[-1] / (times_s[-1] - times_s[0])
    assert min(watts) - 1e-6 <= mean_w <= max(watts) + 1e-6


@given(st.lists(st.floats(0.01, 5.0), min_size=1, max_size=50))
def test_no_gap_is_longer_than_the_window(lengths_s):
    times_s = np.cumsum(lengths_s).tolist()
    assert 0.0 <= energy.gap_s(Span(0.0, times_s[-1] + 1.0, 0.1), times_s) <= times_s[-1] + 1.0


def test_the_joules_of_a_window_are_as_uncertain_as_what_lies_between_its_samples():
    times_s, watts = [0.0, 1.0, 2.0, 3.0], [10.0, 10.0, 22.0, 22.0]  # 48 J; the change came within a second
    assert energy.integral_error(times_s, watts, False) == pytest.approx(12.0 / math.sqrt(12.0) / 48.0)
    assert energy.integral_error(times_s, [10.0] * 4, False) == 0.0


def test_a_counter_of_joules_is_uncertain_by_its_period_at_both_ends():
    times_s = [0.0, 1.0, 2.0, 3.0]
    joules = [0.0, 100.0, 100.0 + 600.0, 700.0 + 600.0]
    off_j = math.hypot(100.0, 600.0) / math.sqrt(12.0)
    assert energy.integral_error(times_s, joules, True) == pytest.approx(off_j / 1300.0)
    assert energy.integral_error(times_s, [5.0] * 4, True) is None  # nothing was counted
