"""Telemetry of a run collects, by member, what each has reported."""

import pytest

from backends.protocol.events import MemberTelemetry, TimeSpent
from backends.protocol.stream_statistics import StreamStatistics
from planner.run.supervisor import MemberRestarted
from planner.train.telemetry import Telemetry
from profilers.records.readings import Window


@pytest.fixture
def telemetry() -> Telemetry:
    return Telemetry(["a", "b"])


def report(steps: int) -> MemberTelemetry:
    return MemberTelemetry(Window(float(steps), {}, ()), TimeSpent(steps, 2.0 * steps))


def test_all_windows_are_kept_and_of_the_time_spent_the_latest(telemetry: Telemetry) -> None:
    for steps in (1, 2, 3):
        telemetry.add("a", report(steps))
    assert telemetry.windows == {"a": [report(steps).window for steps in (1, 2, 3)], "b": []}
    assert telemetry.spent == {"a": [TimeSpent(3, 6.0)], "b": [TimeSpent()]}


def test_the_time_spent_is_counted_anew_from_every_start(telemetry: Telemetry) -> None:
    for event in (report(5), MemberRestarted(), report(2)):
        telemetry.add("a", event)
    assert [each.steps for each in telemetry.spent["a"]] == [5, 2]


def test_the_newest_figures_of_a_stream_are_kept_from_every_start(telemetry: Telemetry) -> None:
    stream = StreamStatistics(30.0, 32, 0, 0.0, 10, 0, 10, 10, 0, 0, 0)
    for arrived in ((5, 8), (3,)):
        for samples in arrived:
            telemetry.add("a", report(1)._replace(stream=stream._replace(arrived=samples)))
        telemetry.add("a", MemberRestarted())
    assert [each.arrived for each in telemetry.streams["a"].values()] == [8, 3]
    assert telemetry.streams["b"] == {}
