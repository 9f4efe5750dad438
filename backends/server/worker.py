"""A worker computes gradients of the weights that it pulls from a parameter server."""

import time
from typing import Any, Callable, List, Optional, Sequence, Tuple, Union

import numpy as np

from backends.data.dataset import BatchLoader
from backends.frameworks.base import Replica
from backends.frameworks.layout import layout_of
from backends.network import framing
from backends.protocol import frames
from backends.protocol.events import TimeSpent
from backends.strategies.compressors.base import Compressor
from backends.strategies.compressors.dense import Uncompressed
from backends.strategies.message import DENSE, Message, buffers, put
from backends.training.array_transfer import describe
from backends.training.step import NOTHING_SPENT, TestSet, evaluate, require_test_images, step

#: What a server may tell a worker to do.
Order = Union[frames.WorkerStep, frames.WorkerEvaluation, frames.Finish]
ORDERS: Tuple[Any, ...] = (frames.WorkerStep, frames.WorkerEvaluation, frames.Finish)


class ServerClient:
    """A worker's client of its server. All methods raise WireError.

    merged_state: (state,) float32 of the run, received with the last order to evaluate.
    """

    def __init__(self, connection: framing.Connection, replica: Replica, compressor: Compressor) -> None:
        self._connection = connection
        self._replica = replica
        self._compressor = compressor
        self.merged_state = np.empty_like(replica.state)
        compressor.bind_weights(replica.weights)

    def introduce(self) -> None:
        """Join the run: send initial weights, or receive the run's state and the worker's own."""
        replica, own = self._replica, self._compressor.state()
        replica.fetch()
        self._connection.send(frames.WorkerHello(layout_of(replica), describe(own)))

        def payload(head: Any) -> Sequence[memoryview]:
            if isinstance(head, frames.InitialWeightsRequest):
                return ()
            return framing.as_bytes((replica.state,) + (own if head.own else ()))

        answer: Any = self._connection.receive(frames.InitialWeightsRequest, frames.Resumption, payload=payload)
        if isinstance(answer, frames.InitialWeightsRequest):
            self._connection.send(frames.RequestedArrays(), framing.as_bytes((replica.weights, replica.state)))
        elif answer.own:
            self._compressor.restore(own)

    def receive_order(self) -> Order:
        """The next order; its weights are then already in the replica's buffer."""
        weights = self._replica.weights
        pulls: List[Message] = []

        def payload(head: Any) -> Sequence[memoryview]:
            if isinstance(head, frames.Finish):
                return ()
            pulls.append(buffers(head.weights, weights.size, weights))
            state = (self.merged_state,) if isinstance(head, frames.WorkerEvaluation) else ()
            return framing.as_bytes(pulls[0].arrays + state)

        order: Order = self._connection.receive(*ORDERS, payload=payload)
        if pulls and pulls[0].kind != DENSE:  # a dense one was received directly into the weights
            put(pulls[0], weights)
        return order

    def push_gradient(self, loss: float, seconds: float, hand_over: bool) -> None:
        """Send the replica's gradient, compressed.

        seconds: time of its computation.
        hand_over: whether to send the compressor's state, too.
        """
        message = self._compressor.compress(self._replica.gradients)
        own = self._compressor.state() if hand_over else ()
        arrays = message.arrays + (self._replica.state,) + own
        self._connection.send(frames.Gradient(loss, seconds, message.head), framing.as_bytes(arrays))

    def push_scores(self, scores: frames.Scores) -> None:
        """Send the result of an evaluation."""
        self._connection.send(scores)

    def hand_over(self) -> None:
        """Send the compressor's state at the end of the run."""
        self._connection.send(frames.RequestedArrays(), framing.as_bytes(self._compressor.state()))


def run(
    connection: framing.Connection,
    replica: Replica,
    batches: BatchLoader,
    test: TestSet,
    slowdown: float = 1.0,
    on_step: Optional[Callable[[TimeSpent], None]] = None,
    compressor: Optional[Compressor] = None,
) -> TimeSpent:
    """Work for a server until it has no more steps; return where time was spent.

    The server sends the replica's weights and state, unless it asks for initial ones.
    on_step: called after every step and evaluation.
    compressor: of gradients; None to send all of them.
    Raises WireError when the server is lost, ValueError where the test set is empty.
    """
    require_test_images(test[1])
    connection.settimeout(None)  # others may be computing; heartbeats detect a lost server
    client = ServerClient(connection, replica, compressor or Uncompressed(replica.variables))
    client.introduce()
    spent = NOTHING_SPENT
    while True:
        asked, asked_cpu = time.perf_counter(), _thread_cpu_s()
        order = client.receive_order()
        if isinstance(order, frames.Finish):
            if order.hand_over:
                client.hand_over()
            return spent
        if isinstance(order, frames.WorkerEvaluation):
            spent = spent.plus(_evaluate(client, replica, test))
        else:
            received = TimeSpent(0, 0.0, time.perf_counter() - asked, 0.0, _thread_cpu_s() - asked_cpu)
            spent = spent.plus(received).plus(_step(client, replica, batches, slowdown, order))
        if on_step is not None:
            on_step(spent)


def _step(
    client: ServerClient, replica: Replica, batches: BatchLoader, slowdown: float, order: frames.WorkerStep
) -> TimeSpent:
    """Compute a gradient as ordered and push it."""
    began = time.perf_counter()
    replica.load()
    batches.batch = order.batch
    process_cpu = time.process_time()
    loss = step(replica, batches, slowdown, order.rate, order.weight_decay)[0]
    gradient_cpu_s = time.process_time() - process_cpu
    computed, computed_cpu = time.perf_counter(), _thread_cpu_s()
    client.push_gradient(loss, computed - began, order.hand_over)
    return TimeSpent(
        steps=1,
        busy_s=computed - began,
        exchange_s=time.perf_counter() - computed,
        evaluation_s=0.0,
        exchange_cpu_s=_thread_cpu_s() - computed_cpu,
        gradient_cpu_s=gradient_cpu_s,
    )


def _thread_cpu_s() -> float:
    return time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)  # time.thread_time is of Python 3.7


def _evaluate(client: ServerClient, replica: Replica, test: TestSet) -> TimeSpent:
    """Evaluate with the run's state in place of this worker's own, and push the scores."""
    own = replica.state.copy()
    replica.state[:] = client.merged_state
    replica.load()
    scores = evaluate(replica, *test)
    replica.state[:] = own
    client.push_scores(scores)
    return NOTHING_SPENT._replace(evaluation_s=scores.seconds)
