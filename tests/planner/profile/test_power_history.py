"""Watts of many windows are joined: sums stay, and the memory that they take is bounded."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.profile.power_history import MOST_MEANS, SensorHistory, SensorMean, average, joined_windows
from profilers.records.readings import PowerReading, Reading, Window


def reading(watts: float | None) -> PowerReading:
    return PowerReading("wall", "sensor", "wall", watts, 0.0, 100)


def lasting(duration_s: float, watts: float | None, **changes: object) -> Window:
    return Window(duration_s, {}, (reading(watts)._replace(**changes),))


def test_an_average_counts_windows_by_their_length_and_those_without_watts_not_at_all() -> None:
    read = average([lasting(10.0, 20.0, gap_s=1.0), lasting(30.0, 40.0, gap_s=2.0), lasting(100.0, None)]).power[0]
    assert (read.watts, read.count, read.gap_s) == (35.0, 200, 3.0)


def test_the_error_of_an_average_is_the_spread_between_windows_and_each_one_s_own() -> None:
    alike = average([lasting(1.0, 50.0, relative_error=0.1)] * 4).power[0]
    assert alike.relative_error == pytest.approx(0.05)
    apart = average([lasting(1.0, watts) for watts in (45.0, 55.0, 45.0, 55.0)]).power[0]
    assert apart.relative_error == pytest.approx(5.7735 / 2 / 50)
    assert average([lasting(1.0, 50.0)]).power[0].relative_error is None


@given(st.lists(st.tuples(st.floats(0.5, 2.0), st.floats(1.0, 100.0)), min_size=1, max_size=3 * MOST_MEANS))
def test_seconds_joules_and_samples_stay_however_many_windows_there_are(windows: list[tuple[float, float]]) -> None:
    whole = average([lasting(seconds, watts, gap_s=0.01) for seconds, watts in windows])
    found = whole.power[0]
    assert whole.duration_s == pytest.approx(math.fsum(seconds for seconds, _ in windows))
    assert whole.duration_s * (found.watts or 0.0) == pytest.approx(math.fsum(each[0] * each[1] for each in windows))
    assert (found.count, found.gap_s) == (100 * len(windows), pytest.approx(0.01 * len(windows)))


def test_the_memory_is_bounded_and_the_error_that_of_all_windows() -> None:
    history = SensorHistory()
    values = [50.0 + (number * 7919 % 101 - 50) / 10.0 for number in range(20 * MOST_MEANS)]
    for watts in values:
        history.add(SensorMean(1.0, reading(watts)))
        assert len(history) <= MOST_MEANS
    assert history.mean().watts == pytest.approx(sum(values) / len(values))
    assert 0.0 < (history.mean().relative_error or 0.0) < 0.003


def test_windows_in_a_row_become_one_with_the_counters_of_both() -> None:
    before = {"load": Reading("%", 10.0, 1.0, 10), "old": Reading("C", 1.0, 0.0, 1)}
    first = lasting(1.0, 20.0)._replace(counters=before)
    second = lasting(3.0, 40.0)._replace(
        counters={"load": Reading("%", 40.0, 1.0, 30), "new": Reading("C", None, None, 0, "it is gone")}
    )
    both = joined_windows(first, second)
    assert (both.duration_s, both.power[0].watts) == (4.0, 35.0)
    assert both.counters["load"] == Reading("%", 32.5, None, 40)
    assert {name: each.mean for name, each in both.counters.items()} == {"load": 32.5, "old": 1.0, "new": None}


def test_a_sensor_that_works_in_no_window_keeps_its_reason() -> None:
    broken = Window(1.0, {}, (reading(None)._replace(reason="it repeats one value"),))
    assert joined_windows(broken, broken).power == broken.power
    assert joined_windows(lasting(1.0, 20.0), broken).power[0].watts == 20.0
