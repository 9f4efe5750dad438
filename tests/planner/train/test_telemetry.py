"""All windows that a member reports are kept, and of its other figures the newest of each start."""

from backends.protocol.events import MemberTelemetry, TimeSpent
from planner.run.supervisor import MemberRestarted
from planner.train.telemetry import NO_REPORT, MemberReports
from profilers.records.readings import Window


def report(steps: int) -> MemberTelemetry:
    return MemberTelemetry(Window(float(steps), {}, ()), TimeSpent(steps, 2.0 * steps))


def test_all_windows_are_kept_and_of_each_start_the_newest_report() -> None:
    reports = MemberReports()
    for event in (report(1), report(5), MemberRestarted(), report(2)):
        reports.add(event)
    assert reports.windows == [report(steps).window for steps in (1, 5, 2)]
    assert reports.starts == [report(5), report(2)]


def test_a_start_without_a_report_counts() -> None:
    reports = MemberReports()
    reports.add(MemberRestarted())
    assert reports.starts == [NO_REPORT, NO_REPORT]
