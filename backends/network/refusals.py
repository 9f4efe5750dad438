"""Connections that were refused are told one by one while they are few, then counted.

A scan of ports would fill the log otherwise.
"""

import threading
import time
from typing import Callable

from backends.protocol.events import Emit, Refused

#: Seconds of an interval, and how many refusals of it are told one by one.
INTERVAL_S, SINGLY = 60.0, 5


class Refusals:
    """Emits what is added, in at most ``SINGLY`` + 1 events an interval."""

    def __init__(self, emit: Emit, clock: Callable[[], float] = time.monotonic) -> None:
        self._emit = emit
        self._clock = clock
        self._lock = threading.Lock()
        self._ends = self._clock() + INTERVAL_S
        self._told = self._counted = 0
        self._last = ""

    def add(self, reason: str) -> None:
        """A connection was refused."""
        self.tell_counted()
        with self._lock:
            singly = self._told < SINGLY
            if singly:
                self._told += 1
            else:
                self._counted, self._last = self._counted + 1, reason
        if singly:
            self._emit(Refused(reason))

    def tell_counted(self, over: bool = False) -> None:
        """Tell how many were counted, where the interval has ended; over: in any case."""
        with self._lock:
            if not over and self._clock() < self._ends:
                return
            counted, self._counted, self._told = self._counted, 0, 0
            self._ends = self._clock() + INTERVAL_S
        if counted:
            self._emit(Refused(self._last, counted))
