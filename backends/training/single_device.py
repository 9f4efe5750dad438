"""A cluster of one device: its accelerator is worker and server, and there is no network."""

import math
import time
from typing import Any, Callable, Dict, Optional, Tuple

import numpy as np

from backends.data.dataset import BatchLoader
from backends.frameworks.base import Replica
from backends.optimizers import lars
from backends.protocol import Emit
from backends.strategies.aggregation import FACTORS, equal
from backends.training import checkpoint
from backends.training.coordinator import Coordinator
from backends.training.layout import Layout, layout_of
from backends.training.member_stats import MemberStats
from backends.training.run_spec import STOPPED, RunSpec, resumed
from backends.training.step import Test, TimeSpent, evaluate, require, stretch
from backends.training.step_queue import EVALUATE, FINISH, StepQueue, WorkItem

NAME = "self"
PROGRESS_S = 0.5


def run(
    work: RunSpec,
    replica: Replica,
    batches: BatchLoader,
    test: Test,
    emit: Emit,
    should_stop: Callable[[], bool],
    slowdown: float = 1.0,
    name: str = NAME,
    began: Any = None,
    on_step: Any = None,
) -> Tuple[Dict[str, Any], TimeSpent]:
    """Train to the last step; returns the account a server would give, and the Spent of its one worker.

    Raises ValueError where the test set is empty or the checkpoint to go on from is of another model, damaged or
    past the last step, OSError where it is not there. ``began``: when the run's clock started, now if not given.
    """
    require(test[1])
    solo = _SingleDevice(work, replica, emit, name, began)
    shown = time.monotonic()
    while True:
        if should_stop():
            solo.stop(STOPPED)
        ticket = solo.tickets.take(name)
        if ticket.kind == FINISH:
            return solo.end(), solo.spent
        if ticket.kind == EVALUATE:
            solo.evaluate(ticket, test)
        else:
            solo.step(ticket, batches, slowdown)
        if on_step is not None:
            on_step(solo.spent)
        if time.monotonic() - shown > PROGRESS_S:
            shown = time.monotonic()
            emit({"progress": solo.progress()})


class _SingleDevice(Coordinator):
    """One run on one device: the framework's own update, but for LARS, which needs the host's."""

    def __init__(self, work: RunSpec, replica: Replica, emit: Emit, name: str, began: Optional[float]) -> None:
        super().__init__(work, emit)
        self._replica = replica
        self._name = name
        self._began = time.monotonic() if began is None else began
        self._cpu_s = time.process_time()
        self._peer = MemberStats()
        self._pacing.begin((name,))
        self._velocity = np.zeros(replica.weights.size if work.strategy.with_lars else 0, np.float32)
        self.tickets = self._begin()
        self.spent = TimeSpent(0, 0.0, 0.0, 0.0)

    def _begin(self) -> StepQueue:
        if self.work.resume is None:
            return StepQueue(self.work.steps, 0, self.work.evaluate_every)
        saved = checkpoint.read_for(self.work.resume, self._layout)
        self._replica.weights[:] = saved.weights
        self._replica.state[:] = saved.state
        self._replica.load()
        if self.work.strategy.with_lars:
            self._velocity[:] = saved.momentum
        else:
            self._replica.set_momentum(saved.momentum)
        self._resume(saved)
        return resumed(self.work, saved.meta)

    def step(self, ticket: WorkItem, batches: BatchLoader, slowdown: float) -> None:
        """One step; of the merges only that by rates tells one gradient from its mean."""
        started, cpu = time.perf_counter(), time.process_time()
        batch = batches.batch = self.batch(self._name)
        share = FACTORS.get(self.work.strategy.aggregation, equal)(batch, batch, self.work.batch, 1)
        order = self.work.order(ticket)
        loss = self._replica.gradient(*next(batches), rate=share * order["rate"], weight_decay=order["weight_decay"])
        if not math.isfinite(loss):
            self._diverged(self._name, ticket, loss)
            return
        gradient_cpu_s = time.process_time() - cpu
        self._update(ticket)
        stretch(time.perf_counter() - started, slowdown)
        busy_s = time.perf_counter() - started
        self.spent = self.spent._replace(
            steps=self.spent.steps + 1,
            busy_s=self.spent.busy_s + busy_s,
            gradient_cpu_s=self.spent.gradient_cpu_s + gradient_cpu_s,
        )
        self._pacing.note(self._name, batch, busy_s)
        self._peer.learnt(loss, 0)
        done = self.tickets.complete(self._name)
        if done == self.work.steps:
            self.ended = time.monotonic()
        elif self.work.checkpoint_every and done % self.work.checkpoint_every == 0:
            self._saver.now(self._snapshot, self._layout)

    def _update(self, ticket: WorkItem) -> None:
        replica, optimiser = self._replica, self.work.optimiser_at(ticket.step)
        if not self.work.strategy.with_lars:
            replica.update(optimiser.momentum)
            return
        replica.fetch()
        lars.apply(replica.weights, self._velocity, replica.gradients, replica.variables, optimiser)
        replica.load()

    def evaluate(self, ticket: WorkItem, test: Test) -> None:
        """Evaluate the weights as they are."""
        scores = evaluate(self._replica, *test)
        self.spent = self.spent._replace(evaluation_s=self.spent.evaluation_s + scores["seconds"])
        self.evaluated(self._name, ticket, scores)

    @property
    def _layout(self) -> Layout:
        return layout_of(self._replica)

    def _snapshot(self) -> checkpoint.Checkpoint:
        replica = self._replica
        replica.fetch()
        momentum = self._velocity if self.work.strategy.with_lars else replica.momentum()
        return checkpoint.Checkpoint(replica.weights, momentum, replica.state, self._meta(), self._kept())

    def end(self) -> Dict[str, Any]:
        """The last checkpoint, but of a run that has diverged, and the account."""
        self.last_checkpoint()
        finished = self.tickets.finished
        account = dict(
            self.progress(),
            finished=finished,
            reason=None if finished else self.reason,
            evaluations=self.evaluations,
            service_s=self.service_s,
            cpu_s=time.process_time() - self._cpu_s,
        )
        self._emit({"progress": self.progress()})
        return account

    def progress(self) -> Dict[str, Any]:
        """Where the run stands, for the live table."""
        return {
            "done": self.tickets.done,
            "total": self.work.steps,
            "elapsed_s": (self.ended or time.monotonic()) - self._began,
            "workers": {self._name: dict(self._peer.summary(), connected=True)},
        }
