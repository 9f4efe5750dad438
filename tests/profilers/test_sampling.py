"""Windows: means over time, from joules and from watts, and sensors that fail on the way."""

import time

import pytest

from profilers import counters, records
from profilers.sampling import Sampler, Series, power
from profilers.sensors.base import Sensor
from profilers.tree import Unavailable

INA = "sys/bus/i2c/drivers/ina3221x/0-0041/iio:device1/"


class Meter(Sensor):
    """A sensor that says what it is told, at the times it is told; None is a failure."""

    name, covers = "meter", "module"

    def __init__(self, counts_joules=False):
        self.counts_joules = counts_joules

    def read(self):
        raise NotImplementedError


def series(samples, failures=0):
    """A series as if taken: (second, value) pairs."""
    made = Series(lambda: 0.0)
    made.times_s, made.values = [s for s, _ in samples], [v for _, v in samples]
    made.failures, made._reason = failures, "bus error"
    return made


def test_watts_are_integrated_by_trapezoids_over_uneven_samples():
    reading = power(Meter(), series([(0.0, 10.0), (1.0, 20.0), (4.0, 20.0)]))
    assert reading.watts == pytest.approx((15 * 1 + 20 * 3) / 4)
    assert (reading.source, reading.covers, reading.count, reading.reason) == ("sensor", "module", 3, None)


def test_joules_are_differenced():
    reading = power(Meter(counts_joules=True), series([(10.0, 500.0), (11.0, 510.0), (14.0, 570.0)]))
    assert reading.watts == pytest.approx(70 / 4)
    assert reading.stdev == pytest.approx(7.0710678)
    assert reading.source == "counter"


def test_few_failures_are_told_and_many_make_it_unavailable():
    samples = [(0.0, 10.0), (1.0, 10.0), (2.0, 10.0)]
    few = power(Meter(), series(samples, failures=1))
    assert (few.watts, few.reason) == (10.0, "1 of 4 reads failed: bus error")
    many = power(Meter(), series(samples, failures=4))
    assert (many.watts, many.source, many.reason) == (None, "unavailable", "4 of 7 reads failed: bus error")


def test_one_sample_is_too_few():
    assert power(Meter(), series([(0.0, 10.0)])).reason == "the window was too short to sample it"


@pytest.mark.parametrize("meter, values", [(Meter(counts_joules=True), (500.0, 500.0)), (Meter(), (0.0, 0.0))])
def test_a_sensor_that_stands_still_is_no_source_of_zero_watts(meter, values):
    reading = power(meter, series([(float(second), value) for second, value in enumerate(values)]))
    assert (reading.watts, reading.source) == (None, "unavailable")
    assert reading.reason.startswith("it counted nothing")


def test_a_series_keeps_on_after_a_failure():
    answers = iter([1.0, Unavailable("gone"), 3.0])

    def read():
        answer = next(answers)
        if isinstance(answer, Unavailable):
            raise answer
        return answer
    taken = Series(read)
    for _ in range(3):
        taken.take()
    assert (taken.values, taken.failures, taken.usable) == ([1.0, 3.0], 1, True)


@pytest.fixture
def jetson(plant, tx2):
    return plant({**tx2, INA + "rail_name_0": "VDD_IN", INA + "in_power0_input": "3177"})


def test_a_window_holds_every_counter_and_every_sensor(jetson):
    sampler = Sampler(jetson.root, period_s=0.02)
    sampler.start()
    time.sleep(0.2)
    window = sampler.stop()
    assert 0.2 <= window.duration_s < 2.0
    assert set(window.counters) == set(counters.UNITS)
    clock = window.counters["f_gpu"]
    assert (clock.unit, clock.mean, clock.stdev, clock.reason) == ("Hz", 1300.5e6, 0.0, None)
    assert 3 <= clock.count <= 11
    total, nvml = window.power
    assert (total.sensor, total.source, total.covers) == ("ina3221:VDD_IN", "emulated", "module")
    assert total.watts == pytest.approx(3.177)
    assert (nvml.source, nvml.watts) == (records.UNAVAILABLE, None) and nvml.reason


def test_a_sensor_that_vanishes_has_a_reason_and_the_rest_goes_on(jetson, tmp_path):
    sampler = Sampler(jetson.root, period_s=0.02)
    sampler.start()
    time.sleep(0.05)
    (tmp_path / INA / "in_power0_input").unlink()
    time.sleep(0.3)
    window = sampler.stop()
    assert window.power[0].source == records.UNAVAILABLE
    assert "reads failed: /" + INA + "in_power0_input does not exist" in window.power[0].reason
    assert window.counters["f_gpu"].mean == 1300.5e6


def test_windows_follow_each_other_and_do_not_mix(jetson, plant):
    sampler = Sampler(jetson.root, period_s=10.0)
    for milliwatts in (1000, 2000):
        plant({INA + "in_power0_input": milliwatts})
        sampler.start()
        window = sampler.stop()
        assert (window.power[0].watts, window.power[0].count) == (milliwatts / 1e3, 2)


def test_on_this_machine_it_costs_little():
    sampler = Sampler()
    sampler.start()
    began = time.process_time()
    time.sleep(1.0)
    spent_s = time.process_time() - began
    window = sampler.stop()
    assert window.counters["u_mem"].mean > 0
    assert spent_s < 0.1  # a generous bound for busy machines; measured: well under 1 % of a core
