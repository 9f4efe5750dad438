"""The clock of a run: when it began and ended, and when its progress was last shown."""

import contextlib
import threading
import time
from typing import Callable, Iterator, Optional

#: Seconds between two views of a run's progress.
PROGRESS_INTERVAL_S = 0.5


class RunClock:
    """Runs from ``begin`` to ``end``. clock: gives monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.begin()

    def begin(self, at_s: Optional[float] = None) -> None:
        """The run begins now, or has begun at ``at_s``, in seconds of the clock."""
        self._shown_s = self._clock()
        self._began_s = self._shown_s if at_s is None else at_s
        self._ended_s: Optional[float] = None

    def end(self) -> None:
        """The run ends now, unless it has ended before."""
        if self._ended_s is None:
            self._ended_s = self._clock()

    @property
    def ended(self) -> bool:
        return self._ended_s is not None

    @property
    def elapsed_s(self) -> float:
        """Seconds since the run began, up to its end."""
        return (self._clock() if self._ended_s is None else self._ended_s) - self._began_s

    def shows_progress(self) -> bool:
        """Whether progress is to be shown now; if so, not again for a while."""
        now_s = self._clock()
        due = now_s - self._shown_s >= PROGRESS_INTERVAL_S
        if due:
            self._shown_s = now_s
        return due


@contextlib.contextmanager
def regularly(call: Callable[[], None]) -> Iterator[None]:
    """Make a call as often as progress is shown, in a thread of its own, until the block ends."""
    over = threading.Event()

    def run() -> None:
        while not over.wait(PROGRESS_INTERVAL_S):
            call()

    threading.Thread(target=run, daemon=True).start()
    try:
        yield
    finally:
        over.set()
