"""Writes a run's checkpoints behind its back."""

import threading
from typing import Callable, Optional

from backends.protocol import Emit
from backends.training import checkpoint
from backends.training.layout import Layout


class CheckpointWriter:
    """Writes one checkpoint at a time to ``path``, none without one. Not thread-safe: the server holds its lock."""

    def __init__(self, path: Optional[str], emit: Emit) -> None:
        self._path = path
        self._emit = emit
        self._writer: Optional[threading.Thread] = None

    def behind(self, snapshot: Callable[[], checkpoint.Checkpoint], layout: Layout) -> None:
        """Write in a thread of its own; a checkpoint that comes while one is written is left out."""
        if self._path is not None and (self._writer is None or not self._writer.is_alive()):
            args = (self._path, snapshot(), layout, self._emit)
            self._writer = threading.Thread(target=checkpoint.save, args=args, daemon=True)
            self._writer.start()

    def join(self) -> None:
        """Wait until what was begun is written."""
        if self._writer is not None:
            self._writer.join()

    def now(self, snapshot: Callable[[], checkpoint.Checkpoint], layout: Layout) -> None:
        """Write and return when it is done, after what was begun before."""
        self.join()
        if self._path is not None:
            checkpoint.save(self._path, snapshot(), layout, self._emit)
