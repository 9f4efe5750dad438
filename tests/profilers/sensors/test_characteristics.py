"""Period and noise are estimated from the reads of sensors with known figures."""

import random
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profilers import time_series
from profilers.file_tree import Unavailable
from profilers.records.device import SensorFacts
from profilers.sensors import characteristics
from profilers.sensors.base import DiscoveredSensors, Sensor
from profilers.sensors.characteristics import Characteristics
from tests.hand_clock import HandClock

UNKNOWN = Characteristics(None, None)


def polls(seconds=2.0, poll_s=0.005):
    return [poll_s * number for number in range(int(seconds / poll_s))]


def held(times_s, period_s, values):
    """Values of a sensor that updates every ``period_s``."""
    return [values[int(at_s / period_s + 1e-9)] for at_s in times_s]


class Meter(Sensor):
    """A sensor that returns given values in turn and repeats the last; exceptions are raised."""

    name, covers = "meter", "module"

    def __init__(self, *says, counts_joules=False):
        self.says = list(says)
        self.counts_joules = counts_joules
        self.closed = False

    def read(self):
        value = self.says.pop(0) if len(self.says) > 1 else self.says[0]
        if isinstance(value, Exception):
            raise value
        return value

    def close(self):
        self.closed = True


# -- estimate --------------------------------------------------------------------------------------


def test_the_period_of_a_sensor_of_watts():
    found = characteristics.estimate(polls(), held(polls(), 0.1, [10.0, 11.0] * 10), False)
    assert found.period_s == pytest.approx(0.1, abs=0.005)


def test_the_noise_of_a_sensor_of_watts():
    shaking = random.Random(4)
    values = [20.0 + shaking.gauss(0.0, 0.5) for _ in range(200)]
    found = characteristics.estimate(polls(), held(polls(), 0.01, values), False)
    assert found.noise_w == pytest.approx(0.5, rel=0.15)


def test_a_step_of_the_load_is_hardly_noise():
    values = [5.0, 5.1] * 10 + [50.0, 50.1] * 10
    assert characteristics.estimate(polls(), held(polls(), 0.05, values), False).noise_w == pytest.approx(
        0.105, abs=0.01
    )


def test_the_period_and_noise_of_a_counter_of_joules():
    joules = [5.0 * number for number in range(40)]
    found = characteristics.estimate(polls(), held(polls(), 0.05, joules), True)
    assert found == (pytest.approx(0.05, abs=1e-6), pytest.approx(0.0, abs=1e-6))


@pytest.mark.parametrize("values", [[], [5.0], [5.0] * 400, held(polls(), 0.5, [1.0, 2.0, 3.0, 4.0])])
def test_characteristics_are_unknown_after_too_few_changes(values):
    assert characteristics.estimate(polls()[: len(values)], values, False) == UNKNOWN


@given(st.lists(st.tuples(st.floats(1e-3, 1.0), st.floats(0.0, 1e3)), max_size=50), st.booleans())
def test_known_characteristics_are_positive(steps, counts_joules):
    times_s, at_s = [], 0.0
    for step_s, _ in steps:
        at_s += step_s
        times_s.append(at_s)
    found = characteristics.estimate(times_s, [value for _, value in steps], counts_joules)
    assert found == UNKNOWN or (found.period_s > 0 and found.noise_w >= 0)


# -- sensors ---------------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch):
    made = HandClock()
    for module in (characteristics, time_series):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=made, sleep=made.pause))
    return made


@pytest.mark.usefixtures("clock")
def test_sensors_are_read_in_turn_for_the_time_given_and_then_closed():
    fast, failing = Meter(1.0, 2.0), Meter(Unavailable("bus error"))
    first, second = characteristics.read_repeatedly([fast, failing], 0.05)
    assert len(first.times_s) == len(first.values) > 2 and first.values[:3] == [1.0, 2.0, 2.0]
    assert (second.values, second.failures, second.reason) == ([], len(first.values), "bus error")
    assert fast.closed and failing.closed


def test_a_sensor_that_starts_slowly_does_not_shorten_the_reading_of_others(monkeypatch, clock):
    slow, fast, waits_s = Meter(1.0), Meter(1.0, 2.0), iter([0.2])
    monkeypatch.setattr(slow, "read", lambda: clock.pause(next(waits_s, 0.0)) or 1.0)
    _, readings = characteristics.read_repeatedly([slow, fast], 0.1)
    assert len(readings.values) > 2


@pytest.mark.usefixtures("clock")
def test_facts_of_every_sensor_and_the_reasons_of_others():
    useful = Meter(*[3.0, 4.0] * 500)
    counter = Meter(*[0.1 * number for number in range(2000)], counts_joules=True)
    found = DiscoveredSensors((useful, counter), (("nvml", "no driver"),))
    meter, joules, missing = characteristics.sensor_facts(found, 0.1)
    assert (meter.name, meter.source, meter.covers, meter.reason) == ("meter", "sensor", "module", None)
    assert meter.period_s > 0.004 and meter.noise_w == pytest.approx(1 / (0.6745 * 2**0.5))
    assert (joules.source, joules.reason) == ("counter", None)
    assert missing == SensorFacts("nvml", "unavailable", "", None, None, "no driver")


@pytest.mark.parametrize(
    "meter, reason",
    [
        (Meter(Unavailable("bus error")), "bus error"),
        (Meter(0.0), "stands still"),
        (Meter(500.0, counts_joules=True), "stands still"),
    ],
)
def test_an_unusable_sensor_has_a_reason(meter, reason):
    (facts,) = characteristics.sensor_facts(DiscoveredSensors((meter,), ()), 0.02)
    assert facts.source == "unavailable" and reason in facts.reason
    assert (facts.period_s, facts.noise_w) == (None, None)


def test_a_survey_without_sensors_waits_for_nothing(plant, monkeypatch):
    monkeypatch.setattr(characteristics.time, "sleep", pytest.fail)
    assert all(facts.reason for facts in characteristics.survey(plant({}).root))
