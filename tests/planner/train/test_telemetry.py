"""Watts of a member are added up, and of its other figures the newest of each start stay."""

from backends.protocol.events import MemberTelemetry, TimeSpent
from planner.run.supervisor import MemberRestarted
from planner.train.telemetry import NO_REPORT, MemberReports
from profilers.records.readings import Window


def report(steps: int) -> MemberTelemetry:
    return MemberTelemetry(Window(float(steps), {}, ()), TimeSpent(steps, 2.0 * steps))


def test_windows_are_added_up_and_of_each_start_the_newest_report_stays() -> None:
    reports = MemberReports()
    for event in (report(1), report(5), MemberRestarted(), report(2)):
        reports.add(event)
    assert reports.power.average().duration_s == 8.0
    assert [start.spent.steps for start in reports.starts] == [5, 2]
    assert [start.window for start in reports.starts] == [NO_REPORT.window] * 2


def test_a_start_without_a_report_counts() -> None:
    reports = MemberReports()
    reports.add(MemberRestarted())
    assert reports.starts == [NO_REPORT, NO_REPORT]
