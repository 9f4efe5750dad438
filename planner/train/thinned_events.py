"""Files of a run's events are thinned the longer it lasts, without losing what they add up to."""

import time
from collections.abc import Callable
from pathlib import Path

from backends.protocol.events import MemberTelemetry, Progress
from planner.agents.call import Event
from planner.profile.power_history import joined_windows
from planner.train.observer import Observer

#: Share of the time that a run has lasted, within which one event of a kind is written, and the
#: longest time: a log that is silent for a minute is that of a run that was cut off.
SHARE, MOST_S = 1.0 / 300.0, 30.0


class ThinnedEvents:
    """Passes events on to another observer: of progress and of readings fewer and fewer.

    Between two of a source there is a three-hundredth of the time since the first event, and half a
    minute at the most. One that comes sooner is held back and joined with the next; it is passed on
    before any other event of its source, and at the end.
    """

    def __init__(self, observer: Observer, clock: Callable[[], float] = time.monotonic) -> None:
        self.path: Path = observer.path
        self._observer = observer
        self._clock = clock
        self._began_s = clock()
        self._held: dict[tuple[str, type], Event] = {}
        self._passed_s: dict[tuple[str, type], float] = {}

    def add(self, source: str, event: Event) -> None:
        if not isinstance(event, MemberTelemetry | Progress):
            self._release(source)
            self._observer.add(source, event)
            return
        key, now_s = (source, type(event)), self._clock()
        event = _joined(self._held.pop(key, None), event)
        pause_s = min(MOST_S, SHARE * (now_s - self._began_s))
        if now_s - self._passed_s.get(key, self._began_s) < pause_s:
            self._held[key] = event
        else:
            self._passed_s[key] = now_s
            self._observer.add(source, event)

    def _release(self, source: str | None = None) -> None:
        """Pass on what is held back of one source, or of all."""
        for key in [key for key in self._held if source in (None, key[0])]:
            self._observer.add(key[0], self._held.pop(key))

    def close(self) -> None:
        try:
            self._release()
        finally:
            self._observer.close()


def _joined(held: Event | None, event: Event) -> Event:
    """The newer event, with the readings of both."""
    if held is None or not isinstance(event, MemberTelemetry):
        return event
    return event._replace(window=joined_windows(held.window, event.window))
