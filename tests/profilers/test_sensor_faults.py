"""A sensor that is stuck, goes backwards or saturates is rejected; honest ones pass."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profilers.sensor_faults import fault

HZ = 10.0


def at(values, hz=HZ):
    """Times of reads that follow each other evenly."""
    return [index / hz for index in range(len(values))]


def judged(values, counts_joules=False, hz=HZ):
    return fault(at(values, hz), list(values), counts_joules)


def noise(seed, count=100):
    return np.random.default_rng(seed).normal(size=count)


def held(values, times):
    """A slow sensor that is read faster than it renews its value."""
    return np.repeat(values, times)


@pytest.mark.parametrize("value", [4.217, 0.35, 61.5])
def test_one_repeated_value_is_a_fault(value):
    assert judged([value] * 40).startswith(f"it repeats one value: {value:g} W in each of 40 reads over 3.9 s")


def test_whole_watts_may_repeat_for_half_a_minute():
    assert judged([5.0] * 290) is None
    assert judged([5.0] * 310).startswith("it repeats one value: 5 W")


def test_a_meter_of_whole_watts_may_repeat_one_for_ever_but_no_fraction():
    assert fault(at([5.0] * 9000), [5.0] * 9000, False, whole_watts_limit_s=math.inf) is None
    found = fault(at([5.1] * 40), [5.1] * 40, False, whole_watts_limit_s=math.inf)
    assert found.startswith("it repeats one value: 5.1 W")


def test_a_slow_sensor_may_repeat_one_value_for_longer():
    values = [7.31] * 100
    assert fault(at(values), values, False, repeat_limit_s=60.0) is None


def test_a_counter_that_stands_still_is_a_fault():
    assert judged([500.0] * 40, counts_joules=True).startswith("it repeats one value: 500 J")


def test_a_counter_that_decreases_once_is_a_fault():
    assert judged([10.0, 11.0, 9.5, 12.0], counts_joules=True) == (
        "it goes backwards: by 1.5 J at once, as after the machine was suspended"
    )
    assert judged([10.0, 11.0, 11.0, 12.0], counts_joules=True) is None


def test_a_ceiling_next_to_many_lower_values_is_saturation():
    load = 15.5 + noise(1)
    assert judged(np.minimum(load, 15.0)).startswith("it saturates: ")
    assert judged(load) is None


@given(st.integers(0, 10_000), st.floats(1.0, 300.0), st.floats(0.005, 0.3))
def test_honest_fine_sensors_pass(seed, mean_w, spread):
    watts = np.abs(mean_w * (1.0 + spread * noise(seed)))
    assert judged(np.round(watts, 3)) is None


@given(st.integers(0, 10_000), st.floats(3.0, 300.0), st.floats(0.0, 0.1))
def test_honest_sensors_of_whole_watts_at_1_hz_pass_on_a_plateau_and_over_a_ramp(seed, mean_w, spread):
    plateau = mean_w * (1.0 + spread * noise(seed, 25))
    ramp = np.linspace(0.3 * mean_w, mean_w, 12)
    assert judged(held(np.round(plateau), 10)) is None
    assert judged(held(np.round(np.concatenate((ramp, plateau))), 10)) is None


@given(st.integers(0, 10_000), st.floats(4.0, 20.0))
def test_a_jetson_s_monitor_passes_between_rest_and_load(seed, idle_w):
    load = np.where(np.arange(100) < 40, idle_w, 2.0 * idle_w) + 0.05 * noise(seed)
    assert judged(np.round(load / 0.038) * 0.038) is None


@given(st.lists(st.floats(0.0, 50.0), min_size=2, max_size=100))
def test_a_counter_that_never_decreases_does_not_go_backwards(steps):
    found = judged(np.cumsum(steps), counts_joules=True)
    assert found is None or found.startswith("it repeats")


@given(st.integers(0, 10_000), st.floats(0.3, 0.8))
def test_a_mostly_clipped_signal_is_saturated(seed, above):
    load = 100.0 + above + noise(seed, 400)
    assert judged(np.minimum(load, 100.0)) is not None
