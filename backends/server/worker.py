"""A worker computes gradients of the weights that it pulls from a parameter server."""

import time
from typing import Any, Callable, List, Optional, Sequence, Tuple, Union

import numpy as np

from backends.data.arrivals import StreamEnded, WaitInterrupted
from backends.data.loader import BatchSource, EvaluationSet
from backends.frameworks.base import Arrays, Replica, layout_of
from backends.network import framing, sample_frames
from backends.network.mailbox import RUN_OVER
from backends.protocol import frames
from backends.protocol.events import TimeSpent
from backends.strategies.compressors.base import Compressor
from backends.strategies.compressors.dense import Uncompressed
from backends.strategies.message import DENSE, Message, buffers, put
from backends.training.array_transfer import describe
from backends.training.local_round import LocalUpdates, RoundAbandoned
from backends.training.step import StepTaken, evaluate, require_test_samples, step
from profilers.thread_times import thread_cpu_s

#: What a server may tell a worker to do.
Order = Union[frames.WorkerStep, frames.WorkerEvaluation, frames.Finish]
ORDERS: Tuple[Any, ...] = (frames.WorkerStep, frames.WorkerEvaluation, frames.Finish)


class Worker:
    """A worker of a run. It begins with the server's weights, unless that asks for initial ones.

    compressor: of gradients; None to send all of them.
    local: makes the rounds of a strategy that has them.
    Raises ValueError where the test set is empty.
    """

    def __init__(
        self,
        connection: framing.Connection,
        replica: Replica,
        batches: BatchSource,
        test: EvaluationSet,
        compressor: Optional[Compressor] = None,
        local: Optional[LocalUpdates] = None,
    ) -> None:
        require_test_samples(test)
        self._local = local
        self._connection = connection
        self._replica = replica
        self._batches = batches
        self._test = test
        self._compressor = compressor or Uncompressed(replica.variables)
        self._compressor.bind_weights(replica.weights)
        self._merged_state = np.empty_like(replica.changing)  # of the run, received with orders to evaluate
        self._waits_in_vain = False

    def on_heartbeat(self, epoch: int) -> None:
        """The server has answered a heartbeat, and says so where the run is over."""
        self._waits_in_vain |= epoch >= RUN_OVER

    def run(self, on_step: Callable[[TimeSpent], None] = lambda spent: None) -> TimeSpent:
        """Work for the server until it has no more steps; return where time was spent.

        on_step: called after every step and evaluation.
        Raises WireError when the server is lost.
        """
        self._connection.settimeout(None)  # others may be computing; heartbeats detect a lost server
        self._introduce()
        spent = TimeSpent()
        while True:
            asked, asked_cpu = time.perf_counter(), thread_cpu_s()
            order = self._receive_order()
            if isinstance(order, frames.Finish):
                if order.hand_over:
                    self._connection.send(frames.RequestedArrays(), framing.as_bytes(self._own_state()))
                return spent
            if isinstance(order, frames.WorkerEvaluation):
                spent = spent.plus(self._evaluate())
            else:
                exchange_cpu_s = thread_cpu_s() - asked_cpu  # a container is paused where that is read
                exchange_s = time.perf_counter() - asked
                spent = spent.plus(TimeSpent(exchange_s=exchange_s, exchange_cpu_s=exchange_cpu_s))
                spent = spent.plus(self._step_or_abandon(order))
            on_step(spent)

    def _introduce(self) -> None:
        """Join the run: send initial weights, or receive the run's state and the worker's own."""
        replica, own = self._replica, self._own_state()
        replica.fetch()
        self._connection.send(frames.WorkerHello(layout_of(replica), describe(own), replica.frozen))

        def payload(head: Any) -> Sequence[memoryview]:
            if isinstance(head, frames.InitialWeightsRequest):
                return ()
            return framing.as_bytes((replica.state,) + (own if head.own else ()))

        answer: Any = self._connection.receive(frames.InitialWeightsRequest, frames.Resumption, payload=payload)
        is_first = isinstance(answer, frames.InitialWeightsRequest)
        self._batches.arrivals.begin(0 if is_first else answer.offset)
        if is_first:
            self._connection.send(frames.RequestedArrays(), framing.as_bytes((replica.weights, replica.state)))
        else:
            replica.load_frozen()
        if not is_first and answer.own:
            self._restore(own)

    def _own_state(self) -> Arrays:
        """What it keeps from step to step: its compressor's arrays, then those of its optimizer."""
        return self._compressor.state() + (() if self._local is None else self._local.state())

    def _restore(self, own: Arrays) -> None:
        compressors = len(self._compressor.state())
        self._compressor.restore(own[:compressors])
        if self._local is not None and own[compressors:]:
            self._local.restore(own[compressors:])

    def _receive_order(self) -> Order:
        """The next order; its weights are then already in the replica's buffer."""
        weights = self._replica.weights
        pulls: List[Message] = []

        def payload(head: Any) -> Sequence[memoryview]:
            if isinstance(head, frames.Finish):
                return ()
            pulls.append(buffers(head.weights, weights.size, weights))
            state = (self._merged_state,) if isinstance(head, frames.WorkerEvaluation) else ()
            return framing.as_bytes(pulls[0].arrays + state)

        def take_in(head: frames.SharedSamples, content: np.ndarray) -> None:
            self._batches.injection.receive(sample_frames.unpacked(head, content))

        order: Order = sample_frames.receive(self._connection, ORDERS, payload, take_in)
        if pulls and pulls[0].kind != DENSE:  # a dense one was received directly into the weights
            put(pulls[0], weights)
        return order

    def _step_or_abandon(self, order: frames.WorkerStep) -> TimeSpent:
        """Make a step, unless its samples do not arrive."""
        try:
            return self._step(order)
        except (WaitInterrupted, RoundAbandoned):
            self._connection.send(frames.StepAbandoned())
        except StreamEnded as ended:
            self._connection.send(frames.StepAbandoned(ended.end))
        return TimeSpent()

    def _step(self, order: frames.WorkerStep) -> TimeSpent:
        began = time.perf_counter()
        waited_s = self._batches.arrivals.waited_s
        self._batches.injection.begin_step(order.share)
        self._replica.load()
        process_cpu = time.process_time()
        taken = self._work(order)
        gradient_cpu_s = time.process_time() - process_cpu
        computed, computed_cpu = time.perf_counter(), thread_cpu_s()
        busy_s = computed - began - (self._batches.arrivals.waited_s - waited_s)
        self._give_samples(order.step)
        self._push_gradient(taken.loss, busy_s, order.hand_over)
        exchange_cpu_s = thread_cpu_s() - computed_cpu
        exchange_s = time.perf_counter() - computed
        steps = 1 if order.local is None else order.local.steps
        return TimeSpent(steps, busy_s, exchange_s, 0.0, exchange_cpu_s, gradient_cpu_s, taken.data_s)

    def _work(self, order: frames.WorkerStep) -> StepTaken:
        """Compute a gradient, or the change of a round."""
        self._batches.arrivals.commit(order.saved_offset)
        if order.local is not None:
            assert self._local is not None, "the server has the same strategy"
            made = self._local.make(order.local, order.rate, order.batch, abandoned=lambda: self._waits_in_vain)
            return made.taken
        self._batches.batch = order.batch
        return step(self._replica, self._batches, order.gradient, lambda: self._waits_in_vain)

    def _give_samples(self, step: int) -> None:
        """Send what the step gives to other workers, to which the server forwards it."""
        given = self._batches.injection.take_given(through_server=True)
        sample_frames.send(self._connection, sample_frames.packed(given.payloads, step))

    def _push_gradient(self, loss: float, seconds: float, hand_over: bool) -> None:
        message = self._compressor.compress(self._replica.gradients)
        own = self._own_state() if hand_over else ()
        arrays = message.arrays + (self._replica.changing,) + own
        head = frames.Gradient(loss, seconds, message.head, self._batches.arrivals.position())
        self._connection.send(head, framing.as_bytes(arrays))

    def _evaluate(self) -> TimeSpent:
        """Evaluate with the run's state in place of this worker's own, and send the scores."""
        replica, own = self._replica, self._replica.changing.copy()
        replica.changing[:] = self._merged_state
        replica.load()
        scores = evaluate(replica, self._test)
        replica.changing[:] = own
        self._connection.send(scores)
        return TimeSpent(evaluation_s=scores.seconds)
