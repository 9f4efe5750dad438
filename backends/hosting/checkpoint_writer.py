"""A checkpoint writer writes a run's checkpoints in a thread, for a file system may hang."""

import os
import threading
import time
from typing import Any, Callable, List, Optional, Sequence

from backends.hosting import spare_place
from backends.protocol.events import CheckpointFailed, CheckpointWritten, Emit, Saving
from backends.training import checkpoint
from backends.training.checkpoint import Checkpoint

#: What a write may take: so many seconds, and one more for so many bytes.
LEAST_S, BYTES_A_SECOND = 30.0, 1e6
#: Seconds between two signs that a write is still waited for.
SIGN_S = 10.0
#: What becomes of a checkpoint that its path does not take.
KEPT = "; it is kept in a spare place until it is fetched, and the next is tried here again"


class CheckpointWriter:
    """Writes checkpoints to one path, one at a time; without a path it writes none.

    What the path does not take, on a full disk say, goes to a ``spare_place``.
    A write that takes longer than any disk should is given up, and said to have failed: what it
    writes is no checkpoint any more. As long as it hangs, others go to the spare place, and to
    memory first: temporary files may be on the same disk. Where that hangs too, none is begun: each
    would keep a copy of the weights.
    Not thread-safe: its owner holds the run's lock.
    on_end: called when a write has ended, failed or been given up, from any thread.
    """

    def __init__(
        self,
        path: Optional[str],
        emit: Emit,
        clock: Callable[[], float] = time.monotonic,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        self._path = path
        self._emit = emit
        self._on_end = on_end
        self._clock = clock
        self._write: Optional[_Write] = None
        self._hanging: List[_Write] = []  # that were given up
        self._said = ""  # the last failure that was told

    def write_in_background(self, snapshot: Callable[[], Checkpoint]) -> None:
        """Write in another thread; a checkpoint that is due during a write is skipped."""
        if self.is_writing:
            return
        if self._write is not None and self._write.is_alive():
            self._give_up(self._write)
        self._hanging = [write for write in self._hanging if write.is_alive()]
        if self._path is not None and not any(write.to_spare for write in self._hanging):
            self._begin(self._path, snapshot, to_spare=bool(self._hanging))

    @property
    def is_writing(self) -> bool:
        """Whether a write is in progress that does not count as hanging."""
        write = self._write
        return write is not None and write.is_alive() and self._clock() <= write.until_s

    def _begin(self, path: str, snapshot: Callable[[], Checkpoint], to_spare: bool) -> None:
        try:
            saved = snapshot()
        except Exception as error:  # noqa: BLE001 - a GPU that fails, or no memory for a copy, ends no run
            self._tell(CheckpointFailed("%s: %s: %s" % (path, type(error).__name__, error)))
            return
        self._write = _Write(path, saved, self._tell, self._clock(), to_spare)
        self._write.start()

    def write(self, snapshot: Callable[[], Checkpoint]) -> None:
        """Wait for a write in progress, then write, and return when it is done."""
        self.join()
        self.write_in_background(snapshot)
        self.join()

    def join(self) -> None:
        """Wait until a write in the background ends, or is given up; say so again and again."""
        write = self._write
        while write is not None and write.is_alive():
            left_s = write.until_s - self._clock()
            if left_s <= 0.0:
                self._give_up(write)
                return
            write.join(min(left_s, SIGN_S))
            if write.is_alive() and left_s > SIGN_S:
                self._emit(Saving())

    def _give_up(self, write: "_Write") -> None:
        self._write = None
        self._hanging.append(write)
        write.given_up = True
        self._tell(CheckpointFailed("%s: writing takes more than %.0f s: it hangs" % (self._path, write.limit_s)))

    def _tell(self, event: Any) -> None:
        """Emit the end of a write; a failure once, until the path takes a checkpoint again."""
        self._on_end()
        if isinstance(event, CheckpointFailed):
            repeats, self._said = event.reason == self._said, event.reason
            if repeats:
                return
        elif event.path == self._path:
            self._said = ""
        self._emit(event)


class _Write(threading.Thread):
    """One write.

    until_s: when it is given up, ``limit_s`` after its begin.
    to_spare: whether it goes to the spare place at once.
    """

    def __init__(
        self, path: str, saved: Checkpoint, tell: Callable[[Any], None], now_s: float, to_spare: bool = False
    ) -> None:
        super().__init__(daemon=True)
        self._path, self._tell, self.to_spare = path, tell, to_spare
        self._saved: Optional[Checkpoint] = saved
        self.limit_s = LEAST_S + _bytes_of(saved) / BYTES_A_SECOND
        self.until_s = now_s + self.limit_s
        self.given_up = False

    def run(self) -> None:
        """Write, and tell of the checkpoint, or that it failed."""
        saved, self._saved = self._saved, None  # it takes as much memory as the run itself
        assert saved is not None, "it runs once"
        try:
            path = self._written(saved)
            found: Any = CheckpointWritten(path, saved.meta["step"], os.path.getsize(path))
        except OSError as error:
            found = CheckpointFailed("%s: %s, and no other place takes it" % (self._path, error.strerror or error))
        except ValueError as error:
            found = CheckpointFailed("%s: %s" % (self._path, error))
        except Exception as error:  # noqa: BLE001 - without a word the operator would wait for it
            found = CheckpointFailed("%s: %s: %s" % (self._path, type(error).__name__, error))
        if not self.given_up:
            self._tell(found)

    def _written(self, saved: Checkpoint) -> str:
        """Write to the path, or else to the spare place; returns where."""
        if self.to_spare:
            return self._kept(saved, spare_place.MEMORY_FIRST)
        try:
            checkpoint.write(self._path, saved, self._is_wanted)
            return self._path
        except OSError as error:
            path = self._kept(saved)
            if self._is_wanted():
                self._tell(CheckpointFailed("%s: %s%s" % (self._path, error.strerror or error, KEPT)))
            return path

    def _kept(self, saved: Checkpoint, folders: Sequence[Optional[str]] = spare_place.MEMORY_LAST) -> str:
        return spare_place.keep(lambda stream: checkpoint.write_to(stream, saved), self._is_wanted, folders)

    def _is_wanted(self) -> bool:
        return not self.given_up


def _bytes_of(saved: Checkpoint) -> int:
    arrays = [saved.weights, saved.state, *saved.slots.values()]
    arrays += [array for own in saved.member_states.values() for array in own]
    return sum(array.nbytes for array in arrays)
