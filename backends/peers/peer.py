"""A peer computes gradients on its coordinator's orders, and exchanges updates with others."""

import collections
import contextlib
import statistics
import time
from typing import Any, Callable, ContextManager, Deque, Dict, Optional, Sequence, Tuple

from backends.data.arrivals import StreamEnded, WaitInterrupted
from backends.data.loader import BatchSource, EvaluationSet
from backends.frameworks.base import OWN_STATE, Arrays, Replica, layout_of
from backends.frameworks.optimizer import OWN, OptimizerSettings
from backends.jobs.failure import JobFailure
from backends.network import framing
from backends.network.mailbox import Interrupted, Mailbox
from backends.peers.exchanges.base import Exchange
from backends.peers.exchanges.state_mean import StateMean
from backends.protocol import frames
from backends.protocol.events import TimeSpent
from backends.strategies import knowledge_transfer
from backends.strategies.message import dense
from backends.training.array_transfer import receive_named, send_named
from backends.training.compute_clock import EXCHANGE, ComputeClock
from backends.training.local_round import LocalUpdates, RoundAbandoned, RoundMade
from backends.training.step import evaluate, require_test_samples, step

#: Steps whose median is the time of a gradient: few, so that a slow first step and those with other
#: batches soon drop out.
RECENT_STEPS = 3
#: Limit of the members whose arrays a peer can receive.
MOST_MEMBERS = 64
#: Name of what a member's own optimizer keeps in rounds of local steps, in a checkpoint.
INNER = "inner"
#: What a coordinator may tell a peer to do.
ORDERS: Tuple[Any, ...] = (frames.PeerStep, frames.PeerTask, frames.Finish)


class Peer:
    """A member of a run of peers.

    optimizer: its settings, except for the rate, which comes with every order.
    own_code: raises JobFailure for errors of the user's own code within it.
    clock: monotonic seconds, for the times of steps.
    exchange_clock: of the exchange under way.
    """

    def __init__(
        self,
        connection: framing.Connection,
        replica: Replica,
        batches: BatchSource,
        test: EvaluationSet,
        exchange: Exchange,
        optimizer: OptimizerSettings,
        own_code: Callable[[], ContextManager[Any]] = contextlib.ExitStack,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        require_test_samples(test)
        self._own_code = own_code
        self._clock = clock
        self._connection = connection
        self._replica = replica
        self._batches = batches
        self._test = test
        self._exchange = exchange
        self._mailbox: Mailbox = exchange.parts.mailbox
        self._mailbox.on_samples = batches.injection.receive
        self._local_update = exchange.parts.local_update
        self._optimizer = optimizer
        strategy = exchange.parts.strategy
        self._local = LocalUpdates.of_strategy(strategy, replica, batches, optimizer)
        self._state_mean = StateMean(self._mailbox, replica.changing, replica.weights.size)
        self._epoch = -1
        self._recent_busy_s: Deque[float] = collections.deque(maxlen=RECENT_STEPS)
        self._reported_bytes = 0
        self._failure: Optional[BaseException] = None  # after which it only hands over its weights
        self.spent = TimeSpent()
        self.exchange_clock = ComputeClock(what=EXCHANGE)

    def run(self, address: str, port: int, on_step: Optional[Callable[[TimeSpent], None]] = None) -> TimeSpent:
        """Work until the run is over; return where time was spent.

        address, port: where it listens for others. on_step: called after every work item.
        Raises WireError when the coordinator is lost, and what a step or an evaluation has raised.
        """
        self._connection.settimeout(None)  # others may be computing; heartbeats detect lost ones
        self._introduce(address, port)
        try:
            last = self._take_orders(on_step)
            if last.hand_over:
                self._hand_over()
        except framing.WireError:
            # The coordinator waits no longer for the end of a step, or has sent it away.
            if not self._mailbox.run_over and self._failure is None:
                raise
        if self._failure is not None:
            raise self._failure
        return self.spent

    def _take_orders(self, on_step: Optional[Callable[[TimeSpent], None]]) -> frames.Finish:
        """Carry out all orders; return the last."""
        while True:
            order: Any = self._connection.receive(*ORDERS, payload=self._weights_payload)
            if isinstance(order, frames.Finish):
                return order
            self._carry_out(order)
            if on_step is not None:
                on_step(self.spent)

    def _introduce(self, address: str, port: int) -> None:
        """Join the run; in a resumed one, restore the checkpoint's arrays."""
        self._replica.fetch()
        layout = layout_of(self._replica)
        self._connection.send(frames.PeerHello(layout, address, port, framing.digest(self._weights())))
        state = receive_named(self._connection, layout, MOST_MEMBERS)
        offset = state.pop(frames.STREAM, ())
        self._batches.arrivals.begin(int(offset[0][0]) if offset else 0)
        self._restore(state)

    def _restore(self, state: Dict[str, Arrays]) -> None:
        if frames.WEIGHTS not in state:
            return
        saved = state.pop(frames.WEIGHTS) + state.pop(frames.STATE)
        for mine, given in zip(self._weights() + (self._replica.state,), saved):
            mine[:] = given
        self._replica.load_frozen()
        self._adopt()
        inner, own = state.pop(INNER, ()), state.pop(OWN_STATE, ())
        if inner and self._local is not None:
            self._local.restore(inner)
        if own and self._optimizer.kind == OWN:
            self._replica.set_own_state(own[0])
        self._exchange.restore(state)

    def _weights(self) -> Arrays:
        return (self._replica.weights, *self._local_update.slots.values())

    def _weights_payload(self, order: Any) -> Sequence[memoryview]:
        takes = isinstance(order, frames.PeerTask) and order.kind == frames.TAKE
        return framing.as_bytes(self._weights() + (self._replica.state,)) if takes else ()

    def _adopt(self) -> None:
        """Continue from weights that another peer has computed."""
        self._replica.load()
        self._exchange.adopt()
        if self._local is not None:
            self._local.drop()

    def _carry_out(self, order: Any) -> None:
        if isinstance(order, frames.PeerStep):
            self._step(order)
        elif order.kind == frames.EVALUATE:
            self._evaluate()
        elif order.kind == frames.TAKE:
            self._replica.load_frozen()
            self._adopt()
            self._connection.send(frames.Done())
        else:
            self._hand_over()

    def _evaluate(self) -> None:
        try:
            with self._own_code():
                scores = evaluate(self._replica, self._test)
        except BaseException as error:  # noqa: BLE001 - it is raised when the weights are handed over
            self._fail(error)
            return
        self._connection.send(scores)
        self.spent = self.spent.plus(TimeSpent(evaluation_s=scores.seconds))

    def _fail(self, error: BaseException) -> None:
        """Tell the coordinator, which may want the weights."""
        self._failure = error
        told = "%s: %s" % (type(error).__name__, error)
        self._connection.send(frames.MemberFailed(told, isinstance(error, JobFailure)))

    def _hand_over(self) -> None:
        """Send all arrays; weights only if no other peer has handed over equal ones."""
        self._connection.send(frames.WeightsOffer(framing.digest(self._weights())))
        state = dict(self._exchange.state(), **{frames.STATE: (self._replica.changing,)})
        if self._optimizer.kind == OWN:
            state[OWN_STATE] = (self._replica.own_state(),)
        if self._local is not None:
            state[INNER] = self._local.state()
        if self._connection.receive(frames.WeightsReply).wanted:
            state[frames.WEIGHTS] = self._weights()
            if self._replica.frozen:
                state[frames.FROZEN] = (self._replica.state[: self._replica.frozen],)
        send_named(self._connection, state)

    def _step(self, order: frames.PeerStep) -> None:
        if self._failure is not None or self._mailbox.is_past(order.epoch):  # ordered before that was known
            self._connection.send(frames.StepAbandoned())
            return
        began, cpu = self._clock(), time.process_time()
        arrivals, waited_s = self._batches.arrivals, self._batches.arrivals.waited_s
        self._begin_epoch(order)
        self._batches.injection.begin_step(order.share)
        try:
            with self._own_code():
                made = self._work(order)
        except (RoundAbandoned, WaitInterrupted):
            self._connection.send(frames.StepAbandoned())
            return
        except StreamEnded as ended:
            self._connection.send(frames.StepAbandoned(ended.end))
            return
        except BaseException as error:  # noqa: BLE001 - it is raised when the weights are handed over
            self._fail(error)
            return
        computed, gradient_cpu_s = self._clock(), time.process_time() - cpu
        began += arrivals.waited_s - waited_s
        self._recent_busy_s.append(computed - began)
        self.exchange_clock.allow(computed - began)  # a slower peer may still be at its round
        with self.exchange_clock:
            completed = self._exchange_step(order, made)
            self._replica.load()
        exchange_s = self._clock() - computed
        steps = made.steps if completed else 0
        self.spent = self.spent.plus(
            TimeSpent(steps, computed - began, exchange_s, 0.0, 0.0, gradient_cpu_s, made.taken.data_s)
        )
        # A round that was kept has taken its time already.
        busy_s = computed - began if order.local is None else made.taken.gradient_s + made.taken.copy_s
        self._report_step(order, made, busy_s, completed)

    def _begin_epoch(self, order: frames.PeerStep) -> None:
        """Begin the order's epoch with its members, unless it has begun."""
        if order.epoch != self._epoch:
            self._epoch = order.epoch
            self._exchange.begin([member.name for member in order.members])
            addresses = {name: (address, port) for name, address, port in order.members}
            self._mailbox.begin(self._epoch, addresses)

    def _work(self, order: frames.PeerStep) -> RoundMade:
        """Compute a gradient, or the change of a round."""
        self._batches.arrivals.commit(order.saved_offset)
        if order.local is not None:
            assert self._local is not None, "the coordinator has the same strategy"
            stays = _takes_own_weights(order)
            return self._local.make(order.local, order.rate, order.batch, stays, lambda: self._mailbox.run_over)
        self._batches.batch = order.batch
        settings = self._optimizer._replace(rate=order.rate).in_gradients
        taken = step(self._replica, self._batches, settings, lambda: self._mailbox.run_over)
        return RoundMade(taken, 1, order.batch)

    def _exchange_step(self, order: frames.PeerStep, made: RoundMade) -> bool:
        """Exchange and update; return False if the membership changed meanwhile."""
        optimizer = order.outer or self._optimizer._replace(rate=order.rate)
        try:
            self._give_samples(order.step)
            self._transfer_knowledge(order)
            if order.local is not None:
                self._state_mean.send([member.name for member in order.members], order.step, made.samples)
            budget_s = statistics.median_low(self._recent_busy_s)
            self._exchange.step(order.step, made.samples, optimizer, budget_s)
        except Interrupted:
            # What a compressor has sent of a round is not known to have arrived.
            if self._local is not None and not self._exchange.parts.strategy.compressor.keeps_residual:
                self._local.keep(made)
            else:
                self._batches.arrivals.put_back()
            return False
        if order.local is not None:
            self._state_mean.merge(made.samples)
        return True

    def _give_samples(self, step: int) -> None:
        """Send other peers what the step gives them."""
        given = self._batches.injection.take_given(through_server=False)
        for name in given.receivers:
            self._mailbox.send_samples(name, step, given.payloads)

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

    def _report_step(self, order: frames.PeerStep, made: RoundMade, seconds: float, completed: bool) -> None:
        """Report a step to the coordinator."""
        sent, self._reported_bytes = self._mailbox.sent_bytes - self._reported_bytes, self._mailbox.sent_bytes
        stream = self._batches.arrivals.position() if completed else None
        done = frames.PeerStepDone(made.taken.loss, order.batch, seconds, sent, not completed, made.steps, stream)
        self._connection.send(done)


def _takes_own_weights(order: frames.PeerStep) -> bool:
    """Whether the outer step leads to the member's own weights: it is alone and has no momentum."""
    outer = order.outer
    return len(order.members) == 1 and outer is not None and (outer.rate, outer.momentum) == (1.0, 0.0)
