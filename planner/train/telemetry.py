"""Telemetry collects what the members of a run report about themselves."""

from collections.abc import Iterable
from typing import Any

from backends.protocol.events import Built, MemberTelemetry, TimeSpent
from backends.protocol.stream_statistics import InjectionStatistics, StreamStatistics
from planner.agents.call import Event
from planner.run.supervisor import MemberRestarted
from planner.train.events import MemberEnded
from profilers.records.readings import Window


class Telemetry:
    """What members have reported, by name.

    windows: what a member's sensors measured, in turn.
    spent: where its time went, one entry for each time it was started.
    streams: the newest figures of its stream of samples, one entry for each time it was started.
    injected: likewise, of the samples that it gave to others and received.
    built_s: seconds that its model took to build.
    compressors: figures of its compressor at the end, such as the CNC ratio.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.windows: dict[str, list[Window]] = {name: [] for name in names}
        self.spent: dict[str, list[TimeSpent]] = {name: [TimeSpent()] for name in self.windows}
        self.streams: dict[str, dict[int, StreamStatistics]] = {name: {} for name in self.windows}
        self.injected: dict[str, dict[int, InjectionStatistics]] = {name: {} for name in self.windows}
        self.built_s: dict[str, float] = {}
        self.compressors: dict[str, dict[str, Any]] = {}

    def add(self, name: str, event: Event) -> None:
        """Collect an event of this member; other events than those of its work are ignored."""
        if isinstance(event, MemberTelemetry):
            self.windows[name].append(event.window)
            self.spent[name][-1] = event.spent
            if event.stream is not None:
                self.streams[name][len(self.spent[name])] = event.stream
            if event.injected is not None:
                self.injected[name][len(self.spent[name])] = event.injected
        elif isinstance(event, MemberRestarted):
            self.spent[name].append(TimeSpent())
        elif isinstance(event, Built):
            self.built_s[name] = event.build_s
        elif isinstance(event, MemberEnded):
            self.compressors[name] = event.account.compressor
