"""The steady state of a run: from two steps of every member until its time is over."""

import pytest

from backends.protocol.events import Dropped, MemberProgress, MemberTelemetry, Progress, TimeSpent
from planner.audit.steady_state import SteadyState, lasting_s, seconds_of_step
from planner.errors import RunError
from planner.train.events import TimeOver
from profilers.records.readings import PowerReading, Window
from tests.planner.plans import plan, planned

RUN = plan(planned("a"), planned("b"))


def count(elapsed_s: float, *steps: int) -> Progress:
    members = {name: MemberProgress(made, None, 0, None, True) for name, made in zip("ab", steps, strict=True)}
    return Progress(sum(steps), 1000, elapsed_s, members)


def seen(*events: object) -> SteadyState:
    found = SteadyState(RUN)
    for event in events:
        found.on_event("a", event)
    return found


def test_steps_count_from_the_first_growth_after_the_warm_up_to_the_last() -> None:
    found = seen(count(1, 5, 1), count(2, 6, 2), count(3, 7, 3), count(4, 7, 3), count(5, 9, 4), count(6, 9, 4))
    assert found.step_s() == pytest.approx((5 - 3) / (13 - 10))


def test_what_comes_after_the_time_is_over_does_not_count() -> None:
    found = seen(count(1, 2, 2), count(2, 3, 3), count(3, 4, 4), TimeOver(), count(9, 5, 5))
    assert found.step_s() == pytest.approx(0.5)


def test_two_growths_are_the_least() -> None:
    assert seconds_of_step([count(1, 2, 2), count(2, 3, 3)]) is None
    with pytest.raises(RunError, match="audit with more --seconds"):
        seen(count(1, 2, 2), count(2, 3, 3)).step_s()


def test_a_run_that_loses_a_member_measures_nothing() -> None:
    with pytest.raises(RunError, match="b was lost: silent"):
        seen(count(1, 2, 2), count(2, 3, 3), count(3, 4, 4), Dropped("b", "silent")).step_s()


def test_watts_are_those_of_sensors_of_every_member_or_none() -> None:
    found = seen(count(1, 2, 2))
    assert found.watts() is None
    for watts in (50.0, 10.0, 12.0):  # the first window begins before the steady state
        reading = PowerReading("plug", "sensor", "wall", watts, 0.0, 5)
        for name in "ab":
            found.on_event(name, MemberTelemetry(spent=TimeSpent(), window=Window(1.0, {}, (reading,))))
    assert found.watts() == pytest.approx(22.0)


def test_a_slow_member_makes_the_run_longer() -> None:
    assert lasting_s(RUN, 100.0) == pytest.approx(2 * 2.0 + 2.5 + 100.0)
    assert lasting_s(RUN, 1.0) == pytest.approx(2 * 2.0 + 2.5 + 5 * 2.0)
