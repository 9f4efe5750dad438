"""The members of a run report about themselves; their reports are kept member by member."""

from dataclasses import dataclass, field
from typing import Any

from backends.protocol.events import Built, Left, MemberTelemetry, TimeSpent
from planner.agents.call import Event
from planner.profile.power_history import PowerHistory
from planner.run.supervisor import MemberRestarted
from planner.train.events import MemberEnded
from profilers.records.readings import Window

#: Of a member that has not reported since it was started.
NO_REPORT = MemberTelemetry(Window(0.0, {}, ()), TimeSpent())


@dataclass
class MemberReports:
    """What one member has reported.

    power: what its sensors measured.
    starts: its newest report from each time it was started, without a window.
    built_s: seconds that its model took to build.
    compressor: figures of its compressor at the end, such as the CNC ratio.
    left: why it left the run before its end; None if it did not.
    """

    power: PowerHistory = field(default_factory=PowerHistory)
    starts: list[MemberTelemetry] = field(default_factory=lambda: [NO_REPORT])
    built_s: float | None = None
    compressor: dict[str, Any] = field(default_factory=dict)
    left: Left | None = None

    def add(self, event: Event) -> None:
        """Collect an event of this member; other events than those of its work are ignored."""
        if isinstance(event, MemberTelemetry):
            self.power.add(event.window)
            self.starts[-1] = event._replace(window=NO_REPORT.window)
        elif isinstance(event, MemberRestarted):
            self.starts.append(NO_REPORT)
        elif isinstance(event, Built):
            self.built_s = event.build_s
        elif isinstance(event, MemberEnded):
            self.compressor = event.account.compressor
        elif isinstance(event, Left):
            self.left = event
