"""A peer computes gradients on its coordinator's orders, and exchanges updates with others."""

import collections
import hashlib
import statistics
import time
from typing import Any, Callable, Deque, Dict, Optional, Sequence, Tuple

from backends.data.loader import BatchSource, EvaluationSet
from backends.frameworks.base import OWN, OWN_STATE, Arrays, OptimizerSettings, Replica, layout_of
from backends.network import framing
from backends.network.mailbox import Interrupted, Mailbox
from backends.peers.exchanges.base import Exchange
from backends.protocol import frames
from backends.protocol.events import TimeSpent
from backends.strategies import knowledge_transfer
from backends.strategies.message import dense
from backends.training.array_transfer import receive_named, send_named
from backends.training.step import StepTaken, evaluate, require_test_samples, step

#: Steps whose median is the time of a gradient: few, so that a slow first step and those with other
#: batches soon drop out.
RECENT_STEPS = 3
#: Limit of the members whose arrays a peer can receive.
MOST_MEMBERS = 64
#: What a coordinator may tell a peer to do.
ORDERS: Tuple[Any, ...] = (frames.PeerStep, frames.PeerTask, frames.Finish)


class Peer:
    """A member of a run of peers.

    optimizer: its settings, except for the rate, which comes with every order.
    clock: monotonic seconds, for the times of steps.
    """

    def __init__(
        self,
        connection: framing.Connection,
        replica: Replica,
        batches: BatchSource,
        test: EvaluationSet,
        exchange: Exchange,
        optimizer: OptimizerSettings,
        slowdown: float = 1.0,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        require_test_samples(test)
        self._clock = clock
        self._connection = connection
        self._replica = replica
        self._batches = batches
        self._test = test
        self._exchange = exchange
        self._mailbox: Mailbox = exchange.parts.mailbox
        self._local_update = exchange.parts.local_update
        self._optimizer = optimizer
        self._slowdown = slowdown
        self._epoch = -1
        self._recent_busy_s: Deque[float] = collections.deque(maxlen=RECENT_STEPS)
        self._reported_bytes = 0
        self.spent = TimeSpent()

    def run(self, address: str, port: int, on_step: Optional[Callable[[TimeSpent], None]] = None) -> TimeSpent:
        """Work until the run is over; return where time was spent.

        address, port: where this peer listens for others.
        on_step: called after every work item.
        Raises WireError when the coordinator is lost.
        """
        self._connection.settimeout(None)  # others may be computing; heartbeats detect lost ones
        self._introduce(address, port)
        while True:
            order: Any = self._connection.receive(*ORDERS, payload=self._weights_payload)
            if isinstance(order, frames.Finish):
                if order.hand_over:
                    self._hand_over()
                return self.spent
            self._carry_out(order)
            if on_step is not None:
                on_step(self.spent)

    def _introduce(self, address: str, port: int) -> None:
        """Join the run; in a resumed one, restore the checkpoint's arrays."""
        self._replica.fetch()
        layout = layout_of(self._replica)
        self._connection.send(frames.PeerHello(layout, address, port, self._digest()))
        self._restore(receive_named(self._connection, layout, MOST_MEMBERS))

    def _restore(self, state: Dict[str, Arrays]) -> None:
        if frames.WEIGHTS not in state:
            return
        saved = state.pop(frames.WEIGHTS) + state.pop(frames.STATE)
        for mine, given in zip(self._weights() + (self._replica.state,), saved):
            mine[:] = given
        self._adopt()
        own = state.pop(OWN_STATE, ())
        if own and self._optimizer.kind == OWN:
            self._replica.set_own_state(own[0])
        self._exchange.restore(state)

    def _weights(self) -> Arrays:
        return (self._replica.weights, *self._local_update.slots.values())

    def _digest(self) -> str:
        """A digest that is equal for equal weights."""
        digest = hashlib.sha256()
        for view in framing.as_bytes(self._weights()):
            digest.update(view)
        return digest.hexdigest()

    def _weights_payload(self, order: Any) -> Sequence[memoryview]:
        takes = isinstance(order, frames.PeerTask) and order.kind == frames.TAKE
        return framing.as_bytes(self._weights() + (self._replica.state,)) if takes else ()

    def _adopt(self) -> None:
        """Continue from weights that another peer has computed."""
        self._replica.load()
        self._exchange.adopt()

    def _carry_out(self, order: Any) -> None:
        if isinstance(order, frames.PeerStep):
            self._step(order)
        elif order.kind == frames.EVALUATE:
            scores = evaluate(self._replica, self._test)
            self._connection.send(scores)
            self.spent = self.spent.plus(TimeSpent(evaluation_s=scores.seconds))
        elif order.kind == frames.TAKE:
            self._adopt()
            self._connection.send(frames.Done())
        else:
            self._hand_over()

    def _hand_over(self) -> None:
        """Send all arrays; weights only if no other peer has handed over equal ones."""
        self._connection.send(frames.WeightsOffer(self._digest()))
        state = dict(self._exchange.state(), **{frames.STATE: (self._replica.state,)})
        if self._optimizer.kind == OWN:
            state[OWN_STATE] = (self._replica.own_state(),)
        if self._connection.receive(frames.WeightsReply).wanted:
            state[frames.WEIGHTS] = self._weights()
        send_named(self._connection, state)

    def _step(self, order: frames.PeerStep) -> None:
        began, cpu = self._clock(), time.process_time()
        self._begin_epoch(order)
        optimizer = self._optimizer._replace(rate=order.rate)
        taken = self._gradient(optimizer, order.batch)
        computed, gradient_cpu_s = self._clock(), time.process_time() - cpu
        busy_s = computed - began
        self._recent_busy_s.append(busy_s)
        completed = self._exchange_step(order, optimizer)
        self._replica.load()
        exchange_s = self._clock() - computed
        self.spent = self.spent.plus(
            TimeSpent(int(completed), busy_s, exchange_s, 0.0, 0.0, gradient_cpu_s, taken.data_s)
        )
        self._report_step(taken.loss, order.batch, busy_s, completed)

    def _begin_epoch(self, order: frames.PeerStep) -> None:
        """Begin the order's epoch with its members, unless it has begun."""
        if order.epoch != self._epoch:
            self._epoch = order.epoch
            self._exchange.begin([member.name for member in order.members])
            addresses = {name: (address, port) for name, address, port in order.members}
            self._mailbox.begin(self._epoch, addresses)

    def _gradient(self, optimizer: OptimizerSettings, batch: int) -> StepTaken:
        self._batches.batch = batch
        return step(self._replica, self._batches, self._slowdown, optimizer.in_gradients)

    def _exchange_step(self, order: frames.PeerStep, optimizer: OptimizerSettings) -> bool:
        """Exchange and update; return False if the membership changed meanwhile."""
        try:
            self._transfer_knowledge(order)
            budget_s = statistics.median_low(self._recent_busy_s)
            self._exchange.step(order.step, order.batch, optimizer, budget_s)
        except Interrupted:
            return False
        return True

    def _transfer_knowledge(self, order: frames.PeerStep) -> None:
        """Send the best peer's weights, or receive and merge them (DLion, section 3.4)."""
        weights = self._replica.weights
        for envelope in self._mailbox.take(lambda envelope: envelope.head.kind == "knowledge", 0):
            knowledge_transfer.merge(weights, envelope.message.arrays[0])
            self._exchange.adopt()
        if order.gives_to:
            copy = dense(weights.copy())
            for name in order.gives_to:
                self._mailbox.send(name, order.step, copy, kind="knowledge")

    def _report_step(self, loss: float, batch: int, seconds: float, completed: bool) -> None:
        """Report a step to the coordinator."""
        sent, self._reported_bytes = self._mailbox.sent_bytes - self._reported_bytes, self._mailbox.sent_bytes
        self._connection.send(frames.PeerStepDone(loss, batch, seconds, sent, not completed))
