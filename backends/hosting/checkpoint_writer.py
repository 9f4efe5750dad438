"""A checkpoint writer writes a run's checkpoints in a thread, for a file system may hang."""

import os
import threading
import time
from typing import Any, Callable, Optional

from backends.protocol.events import CheckpointFailed, CheckpointWritten, Emit
from backends.training import checkpoint
from backends.training.checkpoint import Checkpoint

#: What a write may take: so many seconds, and one more for so many bytes.
LEAST_S, BYTES_A_SECOND = 30.0, 1e6


class CheckpointWriter:
    """Writes checkpoints to one path, one at a time; without a path it writes none.

    A write that takes longer than any disk should is given up, and said to have failed: what it
    writes is no checkpoint any more. As long as it hangs, no other one begins.
    Not thread-safe: its owner holds the run's lock.
    """

    def __init__(self, path: Optional[str], emit: Emit, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._emit = emit
        self._clock = clock
        self._write: Optional[_Write] = None

    def write_in_background(self, snapshot: Callable[[], Checkpoint]) -> None:
        """Write in another thread; a checkpoint that is due during a write is skipped."""
        if self._write is not None and self._write.is_alive():
            if self._clock() > self._write.until_s:
                self._write.give_up()
        elif self._path is not None:
            self._write = _Write(self._path, snapshot(), self._emit, self._clock())
            self._write.start()

    def write(self, snapshot: Callable[[], Checkpoint]) -> None:
        """Wait for a write in progress, then write, and return when it is done."""
        self.join()
        self.write_in_background(snapshot)
        self.join()

    def join(self) -> None:
        """Wait until a write in the background ends, or is given up."""
        if self._write is not None:
            self._write.join(0.0 if self._write.given_up else max(0.0, self._write.until_s - self._clock()))
            if self._write.is_alive():
                self._write.give_up()


class _Write(threading.Thread):
    """One write. until_s: when it is given up."""

    def __init__(self, path: str, saved: Checkpoint, emit: Emit, now_s: float) -> None:
        super().__init__(daemon=True)
        self._path, self._emit = path, emit
        self._saved: Optional[Checkpoint] = saved
        self._limit_s = LEAST_S + _bytes_of(saved) / BYTES_A_SECOND
        self.until_s = now_s + self._limit_s
        self.given_up = False

    def run(self) -> None:
        """Write, and emit an event: of the checkpoint, or that it failed."""
        saved, self._saved = self._saved, None  # it takes as much memory as the run itself
        assert saved is not None, "it runs once"
        try:
            checkpoint.write(self._path, saved, lambda: not self.given_up)
            found: Any = CheckpointWritten(self._path, saved.meta["step"], os.path.getsize(self._path))
        except (OSError, ValueError) as error:
            found = CheckpointFailed("%s: %s" % (self._path, error))
        except Exception as error:  # noqa: BLE001 - without a word the operator would wait for it
            found = CheckpointFailed("%s: %s: %s" % (self._path, type(error).__name__, error))
        if not self.given_up:
            self._emit(found)

    def give_up(self) -> None:
        """Say once that it hangs."""
        if not self.given_up:
            self.given_up = True
            self._emit(CheckpointFailed("%s: writing takes more than %.0f s: it hangs" % (self._path, self._limit_s)))


def _bytes_of(saved: Checkpoint) -> int:
    arrays = [saved.weights, saved.state, *saved.slots.values()]
    arrays += [array for own in saved.member_states.values() for array in own]
    return sum(array.nbytes for array in arrays)
