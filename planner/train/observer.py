"""An observer writes the events of a run to a file of its own."""

from pathlib import Path
from typing import Protocol

from planner.agents.call import Event


class Observer(Protocol):
    """Writes a run's events, or what follows from them, to a file.

    One thread at a time calls it.
    """

    path: Path

    def add(self, source: str, event: Event) -> None:
        """Write an event of ``source``. Raises OSError, after which it is still called."""

    def close(self) -> None:
        """Write what is left. Raises OSError."""
