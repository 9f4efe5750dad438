"""What happens in a run, as it happens: into its event log and onto the screen."""

from collections.abc import Callable
from pathlib import Path

from planner.agents.client import Event
from planner.paths import EventLog

OnEvent = Callable[[str, Event], None]


class EventReporter:
    """Notes events: in the file ``path`` while its disk has room, and with ``on_event``."""

    def __init__(self, path: Path, on_event: OnEvent) -> None:
        self._path = path
        self._log = EventLog(path)
        self._log_failed = False
        self._on_event = on_event

    def note(self, source: str, event: Event) -> None:
        """Note what came from ``source``; a log that fails is said once."""
        try:
            self._log.write(source, event)
        except OSError as error:  # a full disk: training is worth more than its log
            if not self._log_failed:
                self._log_failed = True
                self._on_event("planner", {"log_failed": f"{self._path}: {error.strerror}"})
        self._on_event(source, event)

    def close(self) -> None:
        """Write no more to the file."""
        self._log.close()
