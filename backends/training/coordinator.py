"""What a run has in one place, wherever that is: batches, evaluations, why it ended, and what a checkpoint says."""

import abc
import math
from typing import Any, Dict, List, Optional

from backends.frameworks.base import Arrays
from backends.protocol import Emit
from backends.training import checkpoint
from backends.training.batch_size import BATCH_POLICIES
from backends.training.checkpoint_writer import CheckpointWriter
from backends.training.layout import Layout
from backends.training.run_spec import STOPPED, RunSpec, diverged

#: Before the names of what batches follow, among what members keep; no member has an empty name.
_PACING = "/"


class Coordinator(abc.ABC):
    """What a parameter server (``learning``), a conductor (``concert``) and one device alone (``solo``) share.

    Thread-safe. ``tickets``: who is to do what next; ``evaluations`` are the run's own; ``reason``: why it ends before
    its last step; ``ended``: when that was made.
    """

    #: Mean seconds of an update; None before the first, and where there is none in one place.
    service_s: Optional[float] = None

    tickets: Any = None

    def __init__(self, work: RunSpec, emit: Emit) -> None:
        self.work = work
        self._emit = emit
        self._saver = CheckpointWriter(work.checkpoint_path, emit)
        self._pacing = BATCH_POLICIES[work.strategy.batching](
            work.batch, work.members, work.training_samples, work.seed
        )
        self._earlier: List[Dict[str, Any]] = []
        self.evaluations: List[Dict[str, Any]] = []
        self.reason: Optional[str] = None
        self.ended: Optional[float] = None

    # -- what was done -----------------------------------------------------------------------------

    def batch(self, name: str) -> int:
        """Samples of a member's next step."""
        with self._lock:
            return self._pacing.batch(name)

    def evaluated(self, name: str, ticket: Any, scores: Dict[str, float]) -> None:
        """Note loss, accuracy and seconds of an evaluation that a member was told to make."""
        if not math.isfinite(scores["loss"]):
            self._diverged(name, ticket, scores["loss"])
            return
        record: Dict[str, Any] = dict(scores, step=ticket.step, worker=name)
        with self._lock:
            self.evaluations.append(record)
        self._emit({"evaluated": record})
        self.tickets.complete(name)

    @property
    def _lock(self) -> Any:
        return self.tickets.lock

    def _diverged(self, name: str, ticket: Any, loss: float) -> None:
        """Refuse what would spoil the weights, and end the run: what follows could only be as bad."""
        self._emit({"diverged": name, "step": ticket.step, "loss": str(loss)})
        self.stop(diverged(self.work, name, ticket, loss))
        self.tickets.abandon(name)

    def stop(self, reason: str) -> None:
        """Hand out no more work; the first reason counts."""
        self.reason = self.reason or reason
        self.tickets.stop()

    # -- checkpoints -------------------------------------------------------------------------------

    def _resume(self, saved: checkpoint.Checkpoint) -> Dict[str, Arrays]:
        """Go on from a checkpoint; what members have kept in it."""
        self._earlier = saved.meta["evaluations"]
        ours = {key[len(_PACING) :]: arrays for key, arrays in saved.kept.items() if key.startswith(_PACING)}
        self._pacing.restore(ours)
        return {key: arrays for key, arrays in saved.kept.items() if not key.startswith(_PACING)}

    def _kept(self) -> Dict[str, Arrays]:
        """What batches follow, beside what members keep."""
        return {_PACING + label: arrays for label, arrays in self._pacing.state().items()}

    def _meta(self) -> Dict[str, Any]:
        return dict(self.work.description, step=self.tickets.done, evaluations=self._earlier + self.evaluations)

    @abc.abstractmethod
    def _snapshot(self) -> checkpoint.Checkpoint:
        """A copy of everything."""

    @property
    @abc.abstractmethod
    def _layout(self) -> Layout:
        """Of the run's model, known when there is something to save."""

    def last_checkpoint(self) -> None:
        """Of where the run stands, but for one that has diverged: what was saved before is worth more."""
        self._saver.join()
        if self._has_all and (self.tickets.finished or self.reason == STOPPED):
            with self._lock:
                self._saver.now(self._snapshot, self._layout)

    @property
    def _has_all(self) -> bool:
        """Whether there is something to save."""
        return True
