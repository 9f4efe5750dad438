"""A cluster of one device: its accelerator is worker and server, and there is no network."""

import time
from typing import Any, Callable, Dict, Tuple

import numpy as np

from backends import checkpoint
from backends.base import Replica
from backends.server import Emit, Layout, Work
from backends.tickets import EVALUATE, FINISH, Tickets
from backends.worker import Batches, Spent, evaluate, stretch

NAME = "self"
PROGRESS_S = 0.5


def run(work, replica, batches, test, emit, should_stop, slowdown=1.0, name=NAME, began=None,
        on_step=None):
    # type: (Work, Replica, Batches, Tuple[np.ndarray, np.ndarray], Emit, Callable[[], bool], float, str, Any, Any) -> Any
    """Train to the last step; returns the account a server would give, and the Spent of its one worker."""
    layout = Layout(replica.variables, replica.state_variables)
    done, evaluations = 0, []  # type: int, Any
    if work.resume:
        done = _resume(work.resume, replica, layout)
    tickets = Tickets(work.steps, done, work.evaluate_every)
    spent = Spent(0, 0.0, 0.0, 0.0)
    loss = None
    shown = time.monotonic()
    began = shown if began is None else began
    ended = None
    while True:
        if should_stop():
            tickets.stop()
        ticket = tickets.take(name)
        if ticket.kind == FINISH:
            break
        if ticket.kind == EVALUATE:
            scores = dict(evaluate(replica, *test), step=ticket.step, worker=name)
            evaluations.append(scores)
            spent = spent._replace(evaluation_s=spent.evaluation_s + scores["seconds"])
            emit({"evaluated": scores})
        else:
            started = time.perf_counter()
            value = replica.gradient(*next(batches))
            rate = work.optimiser.rate * work.schedule.factor(ticket.step)
            replica.update(work.optimiser._replace(rate=rate))
            stretch(time.perf_counter() - started, slowdown)
            loss = value if loss is None else 0.9 * loss + 0.1 * value
            busy = spent.busy_s + time.perf_counter() - started
            spent = spent._replace(steps=spent.steps + 1, busy_s=busy)
        tickets.complete(name)
        if on_step is not None:
            on_step(spent)
        if tickets.done == work.steps and ended is None:
            ended = time.monotonic()
        if work.checkpoint_every and tickets.done % work.checkpoint_every == 0 and ticket.kind != EVALUATE:
            _save(work, replica, layout, tickets.done, evaluations, emit)
        if time.monotonic() - shown > PROGRESS_S:
            shown = time.monotonic()
            emit({"progress": _progress(work, tickets, spent, loss, shown - began, name)})
    replica.fetch()
    _save(work, replica, layout, tickets.done, evaluations, emit)
    account = _progress(work, tickets, spent, loss, (ended or time.monotonic()) - began, name)
    account.update(finished=tickets.finished, evaluations=evaluations, service_s=None)
    emit({"progress": account})
    return account, spent


def _resume(path, replica, layout):
    # type: (str, Replica, Layout) -> int
    with open(path, "rb") as stream:
        saved = checkpoint.read(stream, layout.variables, layout.state_variables)
    replica.weights[:] = saved.weights
    replica.state[:] = saved.state
    replica.load()
    replica.set_momentum(saved.momentum)
    return int(saved.meta["step"])


def _save(work, replica, layout, done, evaluations, emit):
    # type: (Work, Replica, Layout, int, Any, Emit) -> None
    replica.fetch()
    meta = dict(work.description, step=done, evaluations=evaluations)
    state = checkpoint.Checkpoint(replica.weights, replica.momentum(), replica.state, meta)
    checkpoint.save(work.checkpoint_path, state, layout.variables, layout.state_variables, emit)


def _progress(work, tickets, spent, loss, elapsed_s, name):
    # type: (Work, Tickets, Spent, Any, float, str) -> Dict[str, Any]
    one = {"steps": spent.steps, "loss": loss, "bytes": 0, "staleness": 0.0, "connected": True}
    return {"done": tickets.done, "total": work.steps, "elapsed_s": elapsed_s, "workers": {name: one}}
