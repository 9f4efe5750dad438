"""Devices that share a kernel are timed while all of them make steps.

They share its memory and often its processors, so that each is slower beside the others than alone.
"""

import threading
from collections.abc import Iterable


class Crowd:
    """The devices that are timed at the same time. Thread-safe."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = frozenset(names)
        self._stepping: set[str] = set()
        self._ended: set[str] = set()
        self._lock = threading.Lock()

    def steps(self, name: str) -> None:
        """A device makes steps: its model is built."""
        with self._lock:
            self._stepping.add(name)

    def end(self, name: str) -> None:
        """A device has been timed, or cannot be."""
        with self._lock:
            self._ended.add(name)

    @property
    def all_step(self) -> bool:
        """Whether what is timed from now on is timed beside all that can make steps."""
        with self._lock:
            return self.names <= self._stepping | self._ended

    @property
    def complete(self) -> bool:
        """Whether all have ended, so that none needs the others any more."""
        with self._lock:
            return self.names <= self._ended
