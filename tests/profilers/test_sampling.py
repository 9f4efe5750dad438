"""A window holds means over time, from joules and from watts, and reasons of failures."""

import time

import pytest

from profilers import counters
from profilers.energy import Span
from profilers.file_tree import fail
from profilers.records.readings import UNAVAILABLE
from profilers.sampling import CPU_SHARE, MAX_PERIOD_S, Sampler, SamplingPeriod, power_reading, window_series
from profilers.sensors.base import Sensor
from profilers.time_series import TimeSeries
from tests.running import until

INA = "sys/bus/i2c/drivers/ina3221x/0-0041/iio:device1/"


class Meter(Sensor):
    """A sensor that returns given values at given times; None is a failure."""

    name, covers = "meter", "module"

    def __init__(self, counts_joules=False, log=None):
        self.counts_joules = counts_joules
        self._log = log

    def read(self):
        raise NotImplementedError

    def history(self, begin_s, end_s):
        return self._log


def series(samples, failures=0, counts_joules=False):
    """A series as if window: (second, value) pairs."""
    result = TimeSeries(lambda: 0.0, counts_joules)
    result.times_s, result.values = [s for s, _ in samples], [v for _, v in samples]
    result.failures, result._reason = failures, "bus error"
    return result


def answering(*values):
    """A series whose reader gives these values in turn; None is a failure."""
    answers = iter(values)

    def read():
        answer = next(answers)
        return fail("gone") if answer is None else answer

    return TimeSeries(read)


def reading_of(samples, meter=None, failures=0, period_s=1.0):
    """What a meter's samples come to, in the window that they span."""
    meter = meter or Meter()
    span = Span(samples[0][0], samples[-1][0], period_s)
    return power_reading(meter, series(samples, failures, meter.counts_joules), span)


def test_watts_are_integrated_by_trapezoids_over_uneven_samples():
    reading = reading_of([(0.0, 10.0), (1.0, 20.0), (4.0, 20.0)])
    assert reading.watts == pytest.approx((15 * 1 + 20 * 3) / 4)
    assert (reading.source, reading.covers, reading.count, reading.reason) == ("sensor", "module", 3, None)


def test_joules_are_differenced():
    reading = reading_of([(10.0, 500.0), (11.0, 510.0), (14.0, 570.0)], Meter(counts_joules=True))
    assert reading.watts == pytest.approx(70 / 4)
    assert reading.stdev == pytest.approx(7.0710678)
    assert reading.source == "counter"


def test_few_failures_are_a_remark_and_many_make_a_sensor_unavailable():
    samples = [(0.0, 10.0), (1.0, 10.0), (2.0, 10.0)]
    few = reading_of(samples, failures=1)
    assert (few.watts, few.reason) == (10.0, "1 of 4 reads failed: bus error")
    many = reading_of(samples, failures=4)
    assert (many.watts, many.source, many.reason) == (None, "unavailable", "4 of 7 reads failed: bus error")


def test_one_sample_is_too_few():
    assert reading_of([(0.0, 10.0)]).reason == "the window was too short to sample it"


@pytest.mark.parametrize("meter, values", [(Meter(counts_joules=True), (500.0, 500.0)), (Meter(), (0.0, 0.0))])
def test_a_sensor_that_stands_still_is_unavailable_instead_of_zero(meter, values):
    reading = reading_of([(float(second), value) for second, value in enumerate(values)], meter)
    assert (reading.watts, reading.source) == (None, "unavailable")
    assert reading.reason.startswith("it counted nothing")


def test_a_sensor_with_a_fault_is_flagged_and_not_used():
    reading = reading_of([(index / 10.0, 4.2) for index in range(40)])
    assert (reading.watts, reading.source) == (None, "unavailable")
    assert reading.reason == "it repeats one value: 4.2 W in each of 40 reads over 3.9 s; flagged and not used"


def test_a_fault_longer_than_a_window_is_found_over_several():
    window = None
    for begin_s in range(4):
        window = TimeSeries(lambda: 0.0, before=window)
        window.times_s, window.values = [begin_s + index / 10.0 for index in range(10)], [4.2] * 10
    reason = power_reading(Meter(), window, Span(3.0, 3.9, 0.1)).reason
    assert reason.startswith("it repeats one value: 4.2 W in each of 40 reads")


def test_a_counter_that_begins_anew_leaves_that_window_without_watts_and_no_other():
    meter, before = Meter(counts_joules=True), None
    read = [(0.0, 900.0), (1.0, 910.0)], [(1.0, 910.0), (2.0, 3.0)], [(2.0, 3.0), (3.0, 13.5)]
    readings = []
    for samples in read:
        before = TimeSeries(lambda: 0.0, True, before)
        before.times_s, before.values = [at_s for at_s, _ in samples], [joules for _, joules in samples]
        readings.append(power_reading(meter, before, Span(samples[0][0], samples[1][0], 0.1)))
    assert [each.watts for each in readings] == [10.0, None, 10.5]
    assert "goes backwards: by 907 J at once, as after the machine was suspended" in readings[1].reason


@pytest.mark.parametrize(
    "covers, counts_joules, values",
    [
        ("module", True, (0.0, 62e3)),
        ("module", False, (12.0, 1.2e6)),
        ("module", False, (12.0, 32767.0)),
        ("board", False, (12.0, 32767.0)),
        ("rail", False, (2.0, 32767.0)),
        ("gpu", False, (300.0, 4294.967)),
        ("gpu", True, (0.0, 3600.0)),
        ("cpu", True, (0.0, 3600.0)),
        ("wall", False, (300.0, 65535.0)),
    ],
)
def test_more_watts_than_anything_draws_that_a_sensor_may_cover_are_flagged(covers, counts_joules, values):
    meter = Meter(counts_joules=counts_joules)
    meter.covers = covers
    reading = reading_of(list(zip((0.0, 1.0), values, strict=True)), meter)
    assert reading.watts is None and "more than any machine draws there" in reading.reason


@pytest.mark.parametrize("covers, watts", [("wall", 12e3), ("board", 3e3), ("gpu", 1400.0)])
def test_many_watts_of_much_are_not_flagged(covers, watts):
    meter = Meter()
    meter.covers = covers
    assert reading_of([(0.0, watts), (1.0, watts + 1)], meter).watts == pytest.approx(watts + 0.5)


def test_a_stuck_sensor_is_flagged_despite_earlier_changes():
    window = TimeSeries(lambda: 0.0, before=series([(0.0, 3.9), (1.0, 4.4)]))
    window.times_s, window.values = [2.0 + index / 10.0 for index in range(40)], [4.2] * 40
    reason = power_reading(Meter(), window, Span(2.0, 5.9, 0.1)).reason
    assert reason.startswith("it repeats one value: 4.2 W in each of 40 reads")


def test_gaps_are_counted_and_remarked():
    samples = [(0.0, 10.0), (0.1, 12.0), (0.2, 10.0), (3.2, 12.0), (3.3, 10.0)]
    reading = reading_of(samples, period_s=0.1)
    assert reading.gap_s == pytest.approx(3.0)
    assert reading.reason == "no samples for 3.0 of 3.3 s"
    even = reading_of([(index / 10.0, watts) for index, (_, watts) in enumerate(samples)], period_s=0.1)
    assert reading.relative_error > even.relative_error


def test_a_counter_keeps_counting_in_a_gap():
    meter = Meter(counts_joules=True)
    reading = reading_of([(0.0, 0.0), (0.1, 1.0), (0.2, 3.0), (3.2, 33.0)], meter, period_s=0.1)
    assert reading.watts == pytest.approx(33 / 3.2)
    assert reading.gap_s == pytest.approx(3.0)


def test_the_log_of_a_sensor_replaces_its_reads():
    polled = series([(10.0, 1.0), (11.0, 1.0)])
    span = Span(10.0, 12.0, 0.1)
    assert window_series(Meter(), polled, span) is polled
    logged = window_series(Meter(log=([9.0, 10.5, 11.5], [4.0, 7.0, 9.0])), polled, span)
    assert (logged.times_s, logged.values) == ([10.0, 10.5, 11.5], [6.0, 7.0, 9.0])
    empty = power_reading(Meter(), window_series(Meter(log=([], [])), polled, span), span)
    assert (empty.watts, empty.reason) == (None, "its log holds nothing of this window")
    few = window_series(Meter(log=([], [])), series([(10.0, 1.0), (11.0, 1.0)], failures=1), span)
    assert power_reading(Meter(), few, span).reason == "1 of 3 reads failed: bus error"


def test_a_fault_in_a_log_longer_than_a_window_is_found():
    stuck = Meter(log=([float(second) for second in range(40)], [4.2] * 40))
    span = Span(30.0, 39.0, 0.1)
    window = window_series(stuck, series([(30.0, 4.2), (39.0, 4.2)]), span)
    assert (window.times_s[0], len(window.values)) == (30.0, 10 + 1)
    reason = power_reading(stuck, window, span).reason
    assert reason.startswith("it repeats one value: 4.2 W in each of 41 reads over 39.0 s")
    moving = Meter(log=([float(second) for second in range(40)], [4.1] + [4.2] * 39))
    window = window_series(moving, series([(30.0, 4.2), (39.0, 4.2)]), span)
    assert power_reading(moving, window, span).watts == pytest.approx(4.2)


def test_a_sample_long_before_a_window_is_not_interpolated():
    polled, span = series([(30.0, 1.0), (32.0, 1.0)]), Span(30.0, 32.0, 0.1)
    assert window_series(Meter(log=([10.0, 31.0, 32.0], [4.0, 7.0, 9.0])), polled, span).times_s == [31.0, 32.0]


def test_a_series_continues_after_a_failure():
    window = answering(1.0, None, 3.0)
    for _ in range(3):
        window.take()
    assert (window.values, window.failures, window.usable) == ([1.0, 3.0], 1, True)


def test_an_error_of_a_sensor_s_library_is_a_failed_read_as_any_other():
    broken = TimeSeries(lambda: 1 // 0)
    broken.take()
    assert (broken.failures, broken.usable) == (1, False)
    assert broken.reason == "ZeroDivisionError: integer division or modulo by zero"


def test_the_sampling_period_grows_with_its_cost():
    period = SamplingPeriod(0.1, CPU_SHARE)
    assert period.period_s == 0.1
    period.add_round(0.0005)
    assert period.period_s == 0.1
    period.add_round(0.0055)
    assert period.period_s == pytest.approx(0.003 / CPU_SHARE)
    period.add_round(1.0)
    assert period.period_s == MAX_PERIOD_S
    assert SamplingPeriod(10.0, CPU_SHARE).period_s == 10.0


@pytest.fixture
def jetson(plant, tx2):
    return plant({**tx2, INA + "rail_name_0": "VDD_IN", INA + "in_power0_input": "3177"})


def test_a_window_holds_every_counter_and_every_sensor(jetson):
    sampler = Sampler(jetson.root, period_s=0.02)
    sampler.start()
    until(lambda: len(sampler._open.counters["f_gpu"].values) > 1, lambda: "nothing is sampled")
    window = sampler.stop()
    assert set(window.counters) == set(counters.UNITS)
    clock = window.counters["f_gpu"]
    assert (clock.unit, clock.mean, clock.stdev, clock.reason) == ("Hz", 1300.5e6, 0.0, None)
    assert 2 <= clock.count <= window.duration_s / 0.02 + 2
    total = window.power[0]
    assert (total.sensor, total.source, total.covers) == ("ina3221:VDD_IN", "sensor", "module")
    assert total.watts == pytest.approx(3.177)
    assert all((each.source, each.watts) == (UNAVAILABLE, None) and each.reason for each in window.power[1:])
    assert 0.0 <= window.cpu_share < 1.0


def test_a_window_has_means_over_bins_of_a_second(jetson):
    sampler = Sampler(jetson.root)
    sampler.start()
    time.sleep(1.6)
    window = sampler.stop()
    assert {len(row) for row in window.seconds.values()} == {int(window.duration_s + 0.5)}
    assert set(window.seconds["f_gpu"]) - {None} == {1300.5e6}  # None where this machine did not sample
    watts = [each for each in window.seconds["power:ina3221:VDD_IN"] if each is not None]
    assert watts == pytest.approx([3.177] * len(watts)) and watts
    assert "c_cp" in window.seconds
    assert {name for name in window.seconds if not name.startswith("power:")} == {
        name for name, reading in window.counters.items() if reading.mean is not None
    }


def test_a_sensor_that_vanishes_has_a_reason_and_others_continue(jetson, tmp_path):
    sampler = Sampler(jetson.root, period_s=0.02)
    sampler.start()
    (tmp_path / INA / "in_power0_input").unlink()
    until(lambda: not sampler._open.power[0].usable, lambda: "it answers more often than it fails")
    window = sampler.stop()
    assert window.power[0].source == UNAVAILABLE
    assert "reads failed: /" + INA + "in_power0_input does not exist" in window.power[0].reason
    assert window.counters["f_gpu"].mean == 1300.5e6


def test_the_next_window_begins_with_the_last_value_of_the_one_before():
    first = answering(1.0, 2.0, 3.0, None, 5.0)
    first.take()
    first.take()
    second = first.continued()
    assert (second.values, second.times_s, second.remembered()[1]) == ([2.0], first.times_s[1:], [1.0, 2.0])
    second.take()
    second.take()
    third = second.continued()
    assert (third.values, third.failures) == ([], 0)
    third.take()
    assert (third.values, third.remembered()[1]) == ([5.0], [1.0, 2.0, 3.0, 5.0])


def test_sampling_goes_on_over_a_turn(jetson):
    sampler = Sampler(jetson.root, period_s=0.02)
    sampler.start()
    thread = sampler._thread
    first = sampler.turn()
    assert sampler._thread is thread
    second = sampler.stop()
    assert [each.power[0].watts for each in (first, second)] == pytest.approx([3.177, 3.177])


@pytest.mark.parametrize("end", [Sampler.stop, Sampler.turn])
def test_windows_follow_each_other_and_do_not_mix(jetson, plant, end):
    sampler = Sampler(jetson.root, period_s=10.0)
    for milliwatts in (1000, 2000):
        plant({INA + "in_power0_input": milliwatts})
        sampler.start()
        window = end(sampler)
        if end is Sampler.turn:
            sampler.stop()
        assert (window.power[0].watts, window.power[0].count) == (pytest.approx(milliwatts / 1e3), 2)


def test_a_window_of_this_machine_states_what_sampling_took():
    sampler = Sampler()
    sampler.start()
    time.sleep(0.5)
    window = sampler.stop()
    assert window.counters["u_mem"].mean > 0
    assert window.cpu_share > 0.0  # benchmarks/sampling_cost.py measures how much
