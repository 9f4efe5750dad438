"""Worker states, such as residuals, are collected for checkpoints and returned on resuming.

A residual is consistent only with weights that include exactly what its worker has sent. So a
worker that has handed over its state waits until all have, and the checkpoint is taken.
"""

from typing import Dict, Set, Tuple

from backends.frameworks.base import Arrays
from backends.protocol.frames import ArraySpec
from backends.training.array_transfer import describe


class WorkerStates:
    """The states of all workers. Not thread-safe: its owner holds the run's lock.

    latest: by worker, the last state it handed over, or else that of the resumed checkpoint.
    """

    def __init__(self, saved: Dict[str, Arrays]) -> None:
        self.latest = dict(saved)
        self._introduced: Set[str] = set()
        self._stateful: Set[str] = set()
        self._awaited: Set[str] = set()
        self._received: Set[str] = set()

    def introduce(self, worker: str, description: Tuple[ArraySpec, ...]) -> Arrays:
        """Add a worker with a state of this description; return the state that it resumes from.

        That is the resumed checkpoint's when the worker first joins, and otherwise empty.
        """
        if description:
            self._stateful.add(worker)
        returns = worker in self._introduced
        self._introduced.add(worker)
        saved = self.latest.get(worker, ())
        return saved if not returns and describe(saved) == description else ()

    def set_members(self, names: Tuple[str, ...]) -> None:
        """Stop waiting for workers that have left."""
        for workers in (self._stateful, self._awaited, self._received):
            workers.intersection_update(names)

    def request(self) -> bool:
        """Request the states of all stateful workers; return whether any must be awaited."""
        if not self.under_way:
            self._awaited = set(self._stateful)
        return bool(self._awaited)

    @property
    def under_way(self) -> bool:
        """Whether states are awaited, or a checkpoint with them."""
        return bool(self._awaited or self._received)

    def is_requested(self, worker: str) -> bool:
        """Whether the worker must hand over its state with its next step."""
        return worker in self._awaited

    def is_stateful(self, worker: str) -> bool:
        """Whether the worker has a state to hand over."""
        return worker in self._stateful

    def add(self, worker: str, arrays: Arrays) -> None:
        """Store the state of a worker after its step."""
        self.latest[worker] = arrays
        self._awaited.discard(worker)
        self._received.add(worker)

    def may_begin(self, worker: str) -> bool:
        """Whether the worker need not wait for a checkpoint with its state."""
        return worker not in self._received

    def complete(self) -> bool:
        """Whether all requested states have arrived, so that the checkpoint can be taken."""
        return bool(self._received) and not self._awaited

    def release(self) -> None:
        """Let all workers continue after the checkpoint."""
        self._received.clear()
