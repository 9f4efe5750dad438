"""Devices that share a kernel are timed while all of them make steps.

They share its memory and often its processors, so that each is slower beside the others than alone.
"""

import threading


class Crowd:
    """The devices that are timed at the same time. Thread-safe."""

    def __init__(self) -> None:
        self._begun: set[str] = set()
        self._timed: set[str] = set()
        self._lock = threading.Lock()

    def begin(self, name: str) -> None:
        """A device begins to make steps."""
        with self._lock:
            self._begun.add(name)

    def end(self, name: str) -> None:
        """A device has been timed, or cannot be."""
        with self._lock:
            self._timed.add(name)

    @property
    def complete(self) -> bool:
        """Whether all that have begun are timed, so that none needs others to make steps."""
        with self._lock:
            return self._begun <= self._timed
