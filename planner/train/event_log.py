"""A run's events are written to its log, shown as they happen, and read back from the log."""

import contextlib
import fcntl
import io
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from backends.protocol.json_messages import decode, encode, record
from planner.agents.call import Event
from planner.train.events import RUN_EVENTS, LogFailed
from planner.train.observer import Observer
from planner.train.thinned_events import ThinnedEvents
from profilers.regular_file import open_regular
from profilers.whole_file import private

OnEvent = Callable[[str, Event], None]


class LoggedEvent(NamedTuple):
    """An event, what it came from, and the seconds since its log was opened."""

    t_s: float
    source: str
    event: Event


class EventLog:
    """Writes events as JSON lines, each with the seconds since the log was opened.

    It holds a lock on the file until it is closed or its process ends (``is_written``).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stream = open(path, "ab", buffering=0, opener=private)  # noqa: SIM115 - `close` ends it
        with contextlib.suppress(OSError):  # of a file system without locks
            fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._began_s = time.monotonic()

    def add(self, source: str, event: Event) -> None:
        """Write a line. Raises OSError."""
        line = {"t_s": round(time.monotonic() - self._began_s, 4), "from": source, **encode(event)}
        self._stream.write(json.dumps(line).encode() + b"\n")

    def close(self) -> None:
        self._stream.close()


class EventReporter:
    """Reports a run's events: to its log and other observers, and to ``on_event``.

    None of them ends the run when it fails. problems: why ``on_event`` did, the first time.
    """

    def __init__(self, path: Path, on_event: OnEvent, observers: Iterable[Observer] = ()) -> None:
        self._observers: tuple[Observer, ...] = (ThinnedEvents(EventLog(path)), *observers)
        self._lock = threading.Lock()
        self._closed = False
        self._failed: set[Path] = set()
        self._show = on_event
        self.problems: list[str] = []

    def report(self, source: str, event: Event) -> None:
        """Report an event of ``source``; a file that cannot be written is reported once."""
        self._each(lambda observer: observer.add(source, event))
        self._on_event(source, event)

    def close(self) -> None:
        """Write no more to files."""
        self._each(lambda observer: observer.close(), closes=True)

    def _on_event(self, source: str, event: Event) -> None:
        try:
            self._show(source, event)
        except Exception as error:  # noqa: BLE001 - who cannot see a run does not want to lose it
            if not self.problems:
                self.problems.append(f"its progress could not be shown: {type(error).__name__}: {error}")

    def _each(self, call: Callable[[Observer], None], closes: bool = False) -> None:
        """Have every observer write, unless they are closed."""
        failures = []
        with self._lock:
            for observer in () if self._closed else self._observers:
                try:
                    call(observer)
                except Exception as error:  # noqa: BLE001 - e.g. a full disk, which should not end the training
                    if observer.path not in self._failed:
                        self._failed.add(observer.path)
                        reason = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
                        failures.append(LogFailed(f"{observer.path}: {reason}"))
            self._closed = self._closed or closes
        for failure in failures:
            self._on_event("planner", failure)


def is_written(path: Path) -> bool:
    """Whether a run that goes on writes this log."""
    try:
        with open_regular(path) as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # no log, or a file system without locks
        return False
    return False


def read(path: Path) -> Iterator[LoggedEvent]:
    """The events of a log, in order.

    Raises OSError where it cannot be read, ValueError where a line is cut off or holds no event.
    """
    with io.TextIOWrapper(open_regular(path), encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                fields = json.loads(line)
                place = record(_Place, {"t_s": fields.pop("t_s"), "source": fields.pop("from")})
                yield LoggedEvent(*place, decode(fields, RUN_EVENTS))
            except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
                raise ValueError(f"line {number}: {error}") from error


class _Place(NamedTuple):
    """Where an event is in a log, and whose it is."""

    t_s: float
    source: str
