"""Files of events grow more slowly the longer a run lasts, and still hold its sums."""

import itertools
import math
from pathlib import Path

from backends.protocol.events import Evaluated, MemberTelemetry, Progress, TimeSpent
from planner.agents.call import Event
from planner.run.supervisor import MemberLost
from planner.runs.summary import SILENT_S
from planner.train.thinned_events import MOST_S, SHARE, ThinnedEvents
from profilers.records.readings import PowerReading, Window


class Kept:
    """An observer that keeps what it is given."""

    path = Path("events.jsonl")

    def __init__(self) -> None:
        self.events: list[tuple[str, Event]] = []
        self.closed = False

    def add(self, source: str, event: Event) -> None:
        self.events.append((source, event))

    def close(self) -> None:
        self.closed = True


def report(steps: int, watts: float = 20.0) -> MemberTelemetry:
    sensor = PowerReading("wall", "sensor", "wall", watts, 0.0, 10)
    return MemberTelemetry(Window(1.0, {}, (sensor,)), TimeSpent(steps))


def thinned() -> tuple[ThinnedEvents, Kept, list[float]]:
    kept, now_s = Kept(), [0.0]
    return ThinnedEvents(kept, lambda: now_s[0]), kept, now_s


def test_in_the_first_minutes_every_event_is_written_and_later_their_number_grows_with_the_logarithm() -> None:
    thin, kept, now_s = thinned()
    for second in range(1, 9001):
        now_s[0] = float(second)
        thin.add("tx2", report(second))
        if second == 300:
            assert len(kept.events) == 300
    assert len(kept.events) <= 1 / SHARE * (1.0 + math.log(9000 * SHARE)) + 1


def test_a_log_is_silent_for_half_a_minute_at_most_however_long_the_run_lasts() -> None:
    thin, kept, now_s = thinned()
    written_s = []
    for second in range(1, 200_000, 5):
        now_s[0] = float(second)
        thin.add("tx2", report(second))
        if len(kept.events) > len(written_s):
            written_s.append(second)
    assert max(after - before for before, after in itertools.pairwise(written_s)) == 30.0
    assert 2 * MOST_S <= SILENT_S


def test_seconds_joules_and_the_newest_figures_are_all_in_the_file() -> None:
    thin, kept, now_s = thinned()
    for second in range(1, 5001):
        now_s[0] = float(second)
        thin.add("tx2", report(second, 10.0 + second % 3))
    thin.close()
    windows = [event.window for _, event in kept.events]
    assert math.isclose(math.fsum(window.duration_s for window in windows), 5000.0)
    joules = math.fsum(window.duration_s * (window.power[0].watts or 0.0) for window in windows)
    assert math.isclose(joules, math.fsum(10.0 + second % 3 for second in range(1, 5001)))
    assert kept.events[-1][1].spent.steps == 5000 and kept.closed


def test_what_is_held_back_comes_before_other_events_of_its_source_and_no_other_event_waits() -> None:
    thin, kept, now_s = thinned()
    evaluated = Evaluated(9, "tx2", 0.5, {}, 1.0)
    for second in (1.0, 3000.0, 3001.0):
        now_s[0] = second
        thin.add("server", Progress(int(second), 9000, second, {}))
        thin.add("tx2", report(int(second)))
    thin.add("server", evaluated)
    assert [event for _, event in kept.events[4:]] == [Progress(3001, 9000, 3001.0, {}), evaluated]
    thin.add("tx2", MemberLost("it is gone"))
    assert [event for _, event in kept.events[6:]] == [report(3001), MemberLost("it is gone")]
