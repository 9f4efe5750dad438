"""What a parameter server does beside talking: hands out steps, applies gradients, takes checkpoints."""

import math
import time
from typing import Any, Callable, List, NamedTuple, Optional, Sequence

import numpy as np

from backends.frameworks.base import Arrays
from backends.optimizers.sgd import finite
from backends.protocol import Emit
from backends.server.aggregation import Aggregator, WorkerGradient
from backends.server.global_model import GlobalModel
from backends.server.worker_state import WorkerStates
from backends.strategies.aggregation import FACTORS
from backends.strategies.message import Message
from backends.training import checkpoint
from backends.training.coordinator import Coordinator
from backends.training.layout import Layout
from backends.training.member_stats import MemberStats
from backends.training.run_spec import RunSpec, resumed
from backends.training.step_queue import STEP, StepQueue, WorkItem


class WeightPull(NamedTuple):
    """What a worker gets with a ticket: what it needs of the weights, the updates in them, the samples of its step, and
    whether it is to bring what it keeps."""

    weights: Message
    version: int
    batch: int
    keep: bool


class ServerState(Coordinator):
    """The weights of a run, and who may do what next.

    ``begin(central)`` gives it the weights where no checkpoint did. Raises ValueError or OSError where the checkpoint
    to go on from cannot be used.
    """

    def __init__(self, work: RunSpec, emit: Emit) -> None:
        super().__init__(work, emit)
        self._central: Optional[GlobalModel] = None
        self._rounds = Aggregator(work.strategy.sync)
        self._keeping = WorkerStates({})
        self.tickets = self._begin()

    def _begin(self) -> StepQueue:
        if self.work.resume is None:
            return StepQueue(self.work.steps, 0, self.work.evaluate_every)
        saved, layout = checkpoint.read(self.work.resume)
        self._central = GlobalModel(layout, saved.weights, saved.momentum, saved.state)
        self._keeping = WorkerStates(self._resume(saved))
        return resumed(self.work, saved.meta)

    # -- who is there ------------------------------------------------------------------------------

    @property
    def begun(self) -> bool:
        """Whether there are weights."""
        return self._central is not None

    def begin(self, central: GlobalModel) -> None:
        """These are the initial weights."""
        self._central = central

    @property
    def model(self) -> GlobalModel:
        """The weights; asserts that there are some."""
        assert self._central is not None, "workers are served after the first has given the initial weights"
        return self._central

    def join(self, worker: str, description: List[Any]) -> Arrays:
        """A worker that keeps such arrays begins; what a resumed run has for it."""
        with self._lock:
            self.model.welcome(worker)
            self._rounds.join(worker)
            self._pacing.begin(self._rounds.workers)
            return self._keeping.join(worker, description)

    def leave(self, worker: str) -> None:
        """Others go on without it: its ticket goes back, and no round and no checkpoint waits for it."""
        with self._lock:
            self._rounds.leave(worker)
            self._pacing.begin(self._rounds.workers)
            self._keeping.leave(worker)
            self.tickets.abandon(worker)
            self._go_on()

    def forget(self, worker: str) -> None:
        """A lost worker's state ages."""
        with self._lock:
            if self._central is not None:
                self._central.forget(worker)

    # -- work --------------------------------------------------------------------------------------

    def take(self, worker: str, gone: Callable[[], bool]) -> WorkItem:
        """The worker's next piece of work, when it may begin it."""
        return self.tickets.take(worker, gone, lambda: self._may_begin(worker))

    def _may_begin(self, worker: str) -> bool:
        return self._rounds.may_begin(worker) and self._keeping.may_begin(worker)

    def pull(self, worker: str, ticket: WorkItem) -> WeightPull:
        """What goes with a ticket."""
        with self._lock:
            keep = ticket.kind == STEP and self._keeping.asked(worker)
            return WeightPull(self.model.pull(worker), self.tickets.done, self.batch(worker), keep)

    def learn(self, peer: MemberStats, ticket: WorkItem, gradient: WorkerGradient, keep: bool) -> None:
        """Take in what a worker brought. It changes the weights when there are enough gradients."""
        with self._lock:
            sound = math.isfinite(gradient.loss) and finite(peer.state) and self.model.accepts(gradient.message)
            if sound:
                self.model.report(gradient.worker, peer.state)
                if keep:
                    self._keeping.bring(gradient.worker, tuple(array.copy() for array in peer.kept))
                self._pacing.note(gradient.worker, gradient.batch, gradient.seconds)
                self._rounds.bring(gradient)
                self._go_on()
        if not sound:
            self._diverged(gradient.worker, ticket, gradient.loss)

    def _go_on(self) -> None:
        """Apply a round that is complete, and count its steps as one with it, so that no checkpoint can come between;
        take a checkpoint that is due where all is there."""
        before, every = self.tickets.done, self.work.checkpoint_every
        gradients = self._rounds.take(self.work.steps - before, self._keeping.complete())
        if gradients:
            self._apply(gradients, before)
        done = self.tickets.done
        if done < self.work.steps and every and done // every > before // every and not self._keeping.ask():
            self._save()
        if self._keeping.complete():
            self._save()
            self._keeping.clear()
        self.tickets.wake()

    def _apply(self, gradients: Sequence[WorkerGradient], before: int) -> None:
        mean_batch, n = self._rounds.mean_batch, len(gradients)
        factor = FACTORS[self.work.strategy.aggregation]
        self.model.update(
            [gradient.message for gradient in gradients],
            [factor(gradient.batch, mean_batch, self.work.batch, n) for gradient in gradients],
            self.work.optimiser_at(before),
            self.work.strategy.with_lars,
        )
        for gradient in gradients:
            gradient.peer.learnt(gradient.loss, before - gradient.version)
            self.tickets.complete(gradient.worker)
        if self.tickets.done == self.work.steps:
            self.ended = time.monotonic()

    # -- state -------------------------------------------------------------------------------------

    def state(self) -> np.ndarray:
        """The mean of what workers reported; a new (state,) float32."""
        with self._lock:
            return self.model.state()

    def asks_last(self, worker: str) -> bool:
        """Whether a worker that is told to finish is to bring what it keeps."""
        return self.work.checkpoint_path is not None and self._keeping.keeps(worker)

    def keep_last(self, worker: str, arrays: Arrays) -> None:
        """What a worker kept at its end."""
        with self._lock:
            self._keeping.kept[worker] = arrays

    def _snapshot(self) -> checkpoint.Checkpoint:
        return self.model.snapshot(self._meta(), dict(self._keeping.kept, **self._kept()))

    @property
    def _layout(self) -> Layout:
        return self.model.layout

    @property
    def _has_all(self) -> bool:
        return self.begun

    def _save(self) -> None:
        self._saver.behind(self._snapshot, self._layout)

    @property
    def service_s(self) -> Optional[float]:
        """Mean seconds of an update; None before the first."""
        return self._central.service_s if self._central is not None else None
