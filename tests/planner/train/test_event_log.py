"""A log holds the events of a run, also while threads write and disks fill, and is read back."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from backends.protocol.events import Evaluated, Joined, MemberTelemetry, Progress, TimeSpent
from planner.agents.call import Event
from planner.run.supervisor import MemberLost
from planner.train.event_log import EventReporter, LoggedEvent, read
from planner.train.events import LogFailed, Sending, Started
from profilers.records.readings import Window


def test_threads_do_not_mix_their_lines_and_late_events_are_dropped(tmp_path: Path) -> None:
    log = EventReporter(tmp_path / "events.jsonl", lambda *_: None)

    def write() -> None:
        for _ in range(50):
            log.report("x", MemberLost("y" * 5000))

    writers = [threading.Thread(target=write) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    log.close()
    log.report("late", Started())
    assert len(list(read(tmp_path / "events.jsonl"))) == 200


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    written = [
        Sending(7),
        MemberTelemetry(Window(1.0, {}, ()), TimeSpent(3, 1.0)),
        Progress(1, 2, 0.5, {}),
        Evaluated(2, "a", 0.5, {"accuracy": 0.25}, 0.1),
    ]
    log = EventReporter(tmp_path / "events.jsonl", lambda *_: None)
    for event in written:
        log.report("a", event)
    log.close()
    logged = list(read(tmp_path / "events.jsonl"))
    assert [each.event for each in logged] == written
    assert {each.source for each in logged} == {"a"}
    assert [each.t_s for each in logged] == sorted(each.t_s for each in logged)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('{"t_s": 1.0, "from": "a", "type": "joi', "line 2: "),
        ('{"t_s": 1.0, "from": "a", "type": "joined"}', "line 2: joined: missing 'member'"),
        ('{"t_s": 1.0, "from": "a", "type": "jointed"}', "line 2: unknown message 'jointed'"),
        ('{"t_s": 1.0, "from": "a", "jointed": "a"}', "line 2: unknown message None"),
        ('{"t_s": 1.0}', "line 2: "),
        ("[]", "line 2: "),
    ],
)
def test_a_line_that_is_no_event_is_named(tmp_path: Path, line: str, complaint: str) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"t_s": 0.5, "from": "planner", "type": "started"}\n' + line + "\n")
    events = read(path)
    assert next(events) == LoggedEvent(0.5, "planner", Started())
    with pytest.raises(ValueError, match=complaint):
        next(events)


def test_a_full_disk_is_reported_once_and_events_still_reach_the_screen() -> None:
    shown: list[tuple[str, Event]] = []
    reporter = EventReporter(Path("/dev/full"), lambda source, event: shown.append((source, event)))
    reporter.report("a", Joined("a"))
    reporter.report("a", Joined("b"))
    reporter.close()
    failed = ("planner", LogFailed("/dev/full: No space left on device"))
    assert shown == [failed, ("a", Joined("a")), ("a", Joined("b"))]


class Tracker:
    """An observer that fails, though not for want of room."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, source: str, event: Event) -> None:
        raise KeyError("loss")

    def close(self) -> None:
        pass


def two_members(folder: Path, view: Callable[[str, Event], None]) -> EventReporter:
    """What is reported of two members beside such an observer."""
    reporter = EventReporter(folder / "events.jsonl", view, [Tracker(folder / "figures")])
    for name in ("a", "b"):
        reporter.report(name, Joined(name))
    reporter.close()
    return reporter


def test_neither_a_view_nor_an_observer_that_fails_ends_the_run(tmp_path: Path) -> None:
    def view(source: str, event: Event) -> None:
        raise UnicodeError("no such character")

    reporter = two_members(tmp_path, view)
    assert [each.source for each in read(tmp_path / "events.jsonl")] == ["a", "b"]
    assert reporter.problems == ["its progress could not be shown: UnicodeError: no such character"]


def test_an_observer_that_fails_is_told_once(tmp_path: Path) -> None:
    shown: list[Event] = []
    two_members(tmp_path, lambda _, event: shown.append(event))
    assert shown == [LogFailed(f"{tmp_path}/figures: KeyError: 'loss'"), Joined("a"), Joined("b")]
