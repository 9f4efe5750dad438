"""A worker: asks for a step, computes its gradient, sends it, and so on until there are none left."""

import threading
import time
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

import numpy as np

from backends import wire
from backends.base import Replica
from backends.data import Batches
from backends.errands import Errands
from backends.strategies.everything import Everything
from backends.strategies.senders import Sender
from backends.tickets import EVALUATE, FINISH

Test = Tuple[np.ndarray, np.ndarray]
#: Images evaluated at once: enough to keep an accelerator busy, few enough for a small board.
EVALUATION_BATCH = 128


class Spent(NamedTuple):
    """Where a worker's time went, in seconds, over ``steps`` steps.

    exchange_cpu_s: processor time of exchanges; gradient_cpu_s: of gradients, as ``StepProfile.cpu_s_per_step`` has it.
    """

    steps: int
    busy_s: float
    exchange_s: float
    evaluation_s: float
    exchange_cpu_s: float = 0.0
    gradient_cpu_s: float = 0.0


def step(
    replica: Replica, batches: Batches, slowdown: float, rate: float, weight_decay: float = 0.0
) -> Tuple[float, float, float]:
    """One gradient into the host buffers: loss, gradient_s and copy_s. A slowdown stretches the computation."""
    began = time.perf_counter()
    loss = replica.gradient(*next(batches), rate=rate, weight_decay=weight_decay)
    stretch(time.perf_counter() - began, slowdown)
    computed = time.perf_counter()
    replica.fetch()
    return loss, computed - began, time.perf_counter() - computed


def stretch(seconds: float, slowdown: float) -> None:
    """Emulate a device ``slowdown`` times slower: wait for the rest of what it would have taken."""
    if slowdown > 1.0:
        time.sleep(seconds * (slowdown - 1.0))


def evaluate(replica: Replica, images: np.ndarray, labels: np.ndarray) -> Dict[str, float]:
    """Mean loss, accuracy and seconds of the replica on a test set. Raises ValueError where that is empty."""
    require(labels)
    began = time.perf_counter()
    loss, right = 0.0, 0
    for start in range(0, len(labels), EVALUATION_BATCH):
        part = slice(start, start + EVALUATION_BATCH)
        part_loss, part_right = replica.evaluate(images[part], labels[part])
        loss += part_loss
        right += part_right
    return {
        "loss": loss / len(labels),
        "accuracy": right / len(labels),
        "seconds": time.perf_counter() - began,
    }


def require(labels: np.ndarray) -> None:
    """Raises ValueError for an empty test set."""
    if not len(labels):
        raise ValueError("the test set is empty: there is nothing to evaluate the model on; give at least one image")


def run(
    connection: wire.Connection,
    replica: Replica,
    batches: Batches,
    test: Test,
    slowdown: float = 1.0,
    on_step: Any = None,
    sender: Optional[Sender] = None,
) -> Spent:
    """Work for a server until it has no more steps. Raises WireError when the server is lost, ValueError before it
    begins where the test set is empty.

    The server gives this replica its weights and state, unless it asks for the initial ones, and after a checkpoint
    what was kept; and it says how many samples each batch has. ``on_step(Spent)`` is called after every ticket.
    ``sender``: what of the gradients goes out; all if not given.
    """
    require(test[1])
    connection.settimeout(None)  # others may be computing, or sending the initial weights: heartbeats tell who is alive
    errands = Errands(connection, replica, sender or Everything(replica.variables))
    errands.introduce()
    spent = Spent(0, 0.0, 0.0, 0.0)
    while True:
        asked, asked_cpu = time.perf_counter(), _thread_cpu_s()
        order = errands.order()
        got, got_cpu = time.perf_counter(), _thread_cpu_s()
        if order["kind"] == FINISH:
            errands.finish(order)
            return spent
        if order["kind"] == EVALUATE:
            scores = _evaluate_with(replica, errands.merged, test)
            connection.send(scores)
            spent = spent._replace(evaluation_s=spent.evaluation_s + scores["seconds"])
        else:
            replica.load()
            batches.batch = order["batch"]
            process_cpu = time.process_time()
            loss = step(replica, batches, slowdown, order["rate"], order["weight_decay"])[0]
            gradient_cpu_s = time.process_time() - process_cpu
            ready, ready_cpu = time.perf_counter(), _thread_cpu_s()
            errands.answer(order, loss, ready - got)
            waited = (got - asked) + (time.perf_counter() - ready)
            spent = Spent(
                steps=spent.steps + 1,
                busy_s=spent.busy_s + ready - got,
                exchange_s=spent.exchange_s + waited,
                evaluation_s=spent.evaluation_s,
                exchange_cpu_s=spent.exchange_cpu_s + (got_cpu - asked_cpu) + (_thread_cpu_s() - ready_cpu),
                gradient_cpu_s=spent.gradient_cpu_s + gradient_cpu_s,
            )
        if on_step is not None:
            on_step(spent)


def _thread_cpu_s() -> float:
    return time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)  # time.thread_time is of Python 3.7


def _evaluate_with(replica: Replica, state: np.ndarray, test: Tuple[np.ndarray, np.ndarray]) -> Dict[str, float]:
    """Evaluate with the run's state in place of this worker's own."""
    own = replica.state.copy()
    replica.state[:] = state
    replica.load()
    scores = evaluate(replica, *test)
    replica.state[:] = own
    return scores


class Pulse:
    """Heartbeats on a connection of their own.

    ``on_lost`` is called once when they are no longer answered, ``on_answer`` with what every answer says.
    """

    def __init__(
        self,
        connection: wire.Connection,
        limit_s: float,
        on_lost: Callable[[str], None],
        on_answer: Callable[[Dict[str, Any]], None] = lambda meta: None,
    ) -> None:
        self._connection = connection
        self._limit_s = limit_s
        self._on_lost = on_lost
        self._on_answer = on_answer
        self._ended = threading.Event()
        connection.settimeout(limit_s)
        connection.send({"pulse": True})
        threading.Thread(target=self._beat, daemon=True).start()

    def _beat(self) -> None:
        try:
            while not self._ended.wait(self._limit_s / 5.0):
                self._connection.send({})
                self._on_answer(self._connection.receive().meta)
        except wire.WireError as error:
            if not self._ended.is_set():
                self._on_lost(str(error))
        finally:
            self._connection.close()

    def close(self) -> None:
        """No more heartbeats."""
        self._ended.set()
