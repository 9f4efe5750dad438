"""What a worker and its server say to each other, from the worker's side."""

import time
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from backends.data.dataset import BatchLoader
from backends.frameworks.base import Replica
from backends.network import framing
from backends.server.worker_state import described
from backends.strategies.compressors.base import Compressor
from backends.strategies.compressors.dense import Uncompressed
from backends.strategies.message import DENSE, Message, buffers, put
from backends.training.layout import layout_of
from backends.training.step import Test, TimeSpent, evaluate, require, step
from backends.training.step_queue import EVALUATE, FINISH


class ServerClient:
    """A worker's side. ``merged``: (state,) float32 that came with an evaluation. All methods raise WireError."""

    def __init__(self, connection: framing.Connection, replica: Replica, sender: Compressor) -> None:
        self._connection = connection
        self._replica = replica
        self._sender = sender
        self.merged = np.empty_like(replica.state)
        sender.bind_weights(replica.weights)

    def introduce(self) -> None:
        """Get the run's state, and after a checkpoint what was kept; or give the initial weights."""
        replica, kept = self._replica, self._sender.state()
        replica.fetch()
        self._connection.send({"layout": layout_of(replica).encode(), "keeps": described(kept)})
        answer = self._connection.receive(
            lambda meta: () if meta["initial"] else framing.as_bytes((replica.state,) + (kept if meta["kept"] else ()))
        ).meta
        if answer["initial"]:
            self._connection.send({}, framing.as_bytes((replica.weights, replica.state)))
        elif answer["kept"]:
            self._sender.restore(kept)

    def order(self) -> Dict[str, Any]:
        """What to do next, the weights brought up to date."""
        weights = self._replica.weights
        pulls: List[Message] = []

        def payload(meta: Dict[str, Any]) -> Any:
            if meta["kind"] == FINISH:
                return ()
            pulls.append(buffers(meta["weights"], weights.size, weights))
            state = (self.merged,) if meta["kind"] == EVALUATE else ()
            return framing.as_bytes(pulls[0].arrays + state)

        order = self._connection.receive(payload).meta
        if pulls and pulls[0].kind != DENSE:  # else it is where it belongs
            put(pulls[0], weights)
        return order

    def answer(self, order: Dict[str, Any], loss: float, seconds: float) -> None:
        """Send the gradient at hand, or what of it is to go, what computing it took, and what is kept where it is asked
        for."""
        message = self._sender.compress(self._replica.gradients)
        kept = self._sender.state() if order["keep"] else ()
        arrays = message.arrays + (self._replica.state,) + kept
        answer = {"loss": loss, "seconds": seconds, "gradient": message.head}
        self._connection.send(answer, framing.as_bytes(arrays))

    def finish(self, order: Dict[str, Any]) -> None:
        """Hand over what is kept, where it is asked for."""
        if order["keep"]:
            self._connection.send({}, framing.as_bytes(self._sender.state()))


def run(
    connection: framing.Connection,
    replica: Replica,
    batches: BatchLoader,
    test: Test,
    slowdown: float = 1.0,
    on_step: Any = None,
    sender: Optional[Compressor] = None,
) -> TimeSpent:
    """Work for a server until it has no more steps. Raises WireError when the server is lost, ValueError before it
    begins where the test set is empty.

    The server gives this replica its weights and state, unless it asks for the initial ones, and after a checkpoint
    what was kept; and it says how many samples each batch has. ``on_step(Spent)`` is called after every ticket.
    ``sender``: what of the gradients goes out; all if not given.
    """
    require(test[1])
    connection.settimeout(None)  # others may be computing, or sending the initial weights: heartbeats tell who is alive
    errands = ServerClient(connection, replica, sender or Uncompressed(replica.variables))
    errands.introduce()
    spent = TimeSpent(0, 0.0, 0.0, 0.0)
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
            spent = TimeSpent(
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
