"""A cluster of one device: its accelerator is worker and server, and there is no network."""

import math
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy as np

from backends import checkpoint
from backends.base import Replica
from backends.layout import layout_of
from backends.peers import Peer
from backends.tickets import EVALUATE, FINISH, Ticket, Tickets
from backends.work import STOPPED, Emit, Work, diverged, resumed
from backends.worker import Batches, Spent, evaluate, require, stretch

NAME = "self"
PROGRESS_S = 0.5

Test = Tuple[np.ndarray, np.ndarray]


def run(work, replica, batches, test, emit, should_stop, slowdown=1.0, name=NAME, began=None, on_step=None):
    # type: (Work, Replica, Batches, Test, Emit, Callable[[], bool], float, str, Any, Any) -> Tuple[Dict[str, Any], Spent]
    """Train to the last step; returns the account a server would give, and the Spent of its one worker.

    Raises ValueError where the test set is empty or the checkpoint to go on from is of another model, damaged or
    past the last step, OSError where it is not there. ``began``: when the run's clock started, now if not given.
    """
    require(test[1])
    solo = _Solo(work, replica, emit, name, began)
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


class _Solo:
    """One run on one device."""

    def __init__(self, work, replica, emit, name, began):
        # type: (Work, Replica, Emit, str, Optional[float]) -> None
        self._work = work
        self._replica = replica
        self._emit = emit
        self._name = name
        self._began = time.monotonic() if began is None else began
        self._ended = None  # type: Optional[float]
        self._cpu_s = time.process_time()
        self._peer = Peer()
        self._reason = None  # type: Optional[str]
        self._evaluations = []  # type: List[Dict[str, Any]]
        self._earlier = []  # type: List[Dict[str, Any]]
        self.tickets = self._begin()
        self.spent = Spent(0, 0.0, 0.0, 0.0)

    def _begin(self):
        # type: () -> Tickets
        if self._work.resume is None:
            return Tickets(self._work.steps, 0, self._work.evaluate_every)
        saved = checkpoint.read_for(self._work.resume, layout_of(self._replica))
        self._replica.weights[:] = saved.weights
        self._replica.state[:] = saved.state
        self._replica.load()
        self._replica.set_momentum(saved.momentum)
        self._earlier = saved.meta["evaluations"]
        return resumed(self._work, saved.meta)

    def step(self, ticket, batches, slowdown):
        # type: (Ticket, Batches, float) -> None
        started, cpu = time.perf_counter(), time.process_time()
        order = self._work.order(ticket)
        loss = self._replica.gradient(*next(batches), rate=order["rate"], weight_decay=order["weight_decay"])
        if not math.isfinite(loss):
            self._diverged(ticket, loss)
            return
        gradient_cpu_s = time.process_time() - cpu
        self._replica.update(self._work.optimiser.momentum)
        stretch(time.perf_counter() - started, slowdown)
        self.spent = self.spent._replace(
            steps=self.spent.steps + 1,
            busy_s=self.spent.busy_s + time.perf_counter() - started,
            gradient_cpu_s=self.spent.gradient_cpu_s + gradient_cpu_s,
        )
        self._peer.learnt(loss, 0)
        done = self.tickets.complete(self._name)
        if done == self._work.steps:
            self._ended = time.monotonic()
        elif self._work.checkpoint_every and done % self._work.checkpoint_every == 0:
            self._save()

    def evaluate(self, ticket, test):
        # type: (Ticket, Test) -> None
        scores = dict(evaluate(self._replica, *test), step=ticket.step, worker=self._name)  # type: Dict[str, Any]
        self.spent = self.spent._replace(evaluation_s=self.spent.evaluation_s + scores["seconds"])
        if not math.isfinite(scores["loss"]):
            self._diverged(ticket, scores["loss"])
            return
        self._evaluations.append(scores)
        self._emit({"evaluated": scores})
        self.tickets.complete(self._name)

    def _diverged(self, ticket, loss):
        # type: (Ticket, float) -> None
        self._emit({"diverged": self._name, "step": ticket.step, "loss": str(loss)})
        self.stop(diverged(self._name, ticket, loss))
        self.tickets.abandon(self._name)

    def stop(self, reason):
        # type: (str) -> None
        self._reason = self._reason or reason
        self.tickets.stop()

    def _save(self):
        # type: () -> None
        if self._work.checkpoint_path is None:
            return
        self._replica.fetch()
        meta = dict(self._work.description, step=self.tickets.done, evaluations=self._earlier + self._evaluations)
        replica = self._replica
        snapshot = checkpoint.Checkpoint(replica.weights, replica.momentum(), replica.state, meta)
        checkpoint.save(self._work.checkpoint_path, snapshot, layout_of(replica), self._emit)

    def end(self):
        # type: () -> Dict[str, Any]
        """The last checkpoint, but of a run that has diverged, and the account."""
        finished = self.tickets.finished
        if finished or self._reason == STOPPED:
            self._save()
        account = dict(
            self.progress(),
            finished=finished,
            reason=None if finished else self._reason,
            evaluations=self._evaluations,
            service_s=None,
            cpu_s=time.process_time() - self._cpu_s,
        )
        self._emit({"progress": self.progress()})
        return account

    def progress(self):
        # type: () -> Dict[str, Any]
        return {
            "done": self.tickets.done,
            "total": self._work.steps,
            "elapsed_s": (self._ended or time.monotonic()) - self._began,
            "workers": {self._name: dict(self._peer.summary(), connected=True)},
        }
