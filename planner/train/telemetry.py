"""Telemetry collects what the members of a run tell of themselves."""

from collections.abc import Iterable
from typing import Any

from backends.protocol.events import Built, MemberTelemetry, TimeSpent
from planner.agents.client import Event
from planner.train.events import MemberEnded
from profilers.records import Window


class Telemetry:
    """Collects by member.

    windows: what its sensors said, in turn.
    spent: where its time went in each of its lives; a member that is started again begins a new life.
    built_s: seconds that its model took to build.
    compressors: figures of its compressor at the end, such as the CNC ratio.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.windows: dict[str, list[Window]] = {name: [] for name in names}
        self.spent: dict[str, list[TimeSpent]] = {name: [] for name in self.windows}
        self.built_s: dict[str, float] = {}
        self.compressors: dict[str, dict[str, Any]] = {}

    def begin_life(self, name: str) -> None:
        """This member is started, for the first time or again."""
        self.spent[name].append(TimeSpent())

    def add(self, name: str, event: Event) -> None:
        """Collect an event of this member; those that tell nothing of its work are left out."""
        if isinstance(event, MemberTelemetry):
            self.windows[name].append(event.window)
            self.spent[name][-1:] = [event.spent]
        elif isinstance(event, Built):
            self.built_s[name] = event.build_s
        elif isinstance(event, MemberEnded):
            self.compressors[name] = event.account.compressor

    def stepped(self, name: str) -> bool:
        """Whether this member has made a step in its present life."""
        return bool(self.spent[name]) and self.spent[name][-1].steps > 0

    def ever_stepped(self, name: str) -> bool:
        """Whether this member has made a step in any of its lives."""
        return any(life.steps for life in self.spent[name])
