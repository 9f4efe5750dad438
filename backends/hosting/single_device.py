"""A cluster of one device trains without a network: its accelerator computes and updates."""

import math
import time
from typing import Any, Callable, ContextManager, Dict, Optional

from backends.data.arrivals import StreamEnded, WaitInterrupted
from backends.data.loader import BatchSource, EvaluationSet
from backends.frameworks.base import OWN_STATE, Arrays, Replica, layout_of
from backends.frameworks.optimizer import LARS, OWN, Slots
from backends.frameworks.process_group import ExchangeTime
from backends.hosting.run_clock import regularly
from backends.hosting.run_state import RunState
from backends.hosting.step_queue import StepQueue, WorkItem
from backends.optimizers.base import FlatOptimizer
from backends.optimizers.lars import Lars
from backends.protocol.events import Emit, Left, MemberProgress, RunAccount, TimeSpent
from backends.protocol.frames import EVALUATE, FINISH
from backends.protocol.stream_statistics import StreamEnd, StreamPosition
from backends.strategies.aggregation_rules import FACTORS, equal
from backends.training import checkpoint
from backends.training.compute_clock import clock_of
from backends.training.run_spec import STOPPED, RunSpec
from backends.training.step import evaluate, gradient, require_test_samples
from backends.training.stopping import STREAMS_ENDED

NAME = "self"
NO_EXCHANGE = ExchangeTime(0.0, 0.0, 0.0)


class SingleDevice(RunState):
    """A run on one device, whose framework updates the weights; only LARS does so in numpy.

    spent: where its time went so far.
    Raises OSError where there is no checkpoint to resume from, ValueError where that is of another
    model, damaged or past the last step.
    """

    step_queue: StepQueue

    def __init__(self, spec: RunSpec, replica: Replica, batches: BatchSource, emit: Emit, name: str = NAME) -> None:
        super().__init__(spec, emit)
        self._replica = replica
        self._batches = batches
        self.name = name
        self._set_present([name])
        with_lars = spec.optimizer.kind == LARS
        self._on_host: Optional[FlatOptimizer] = Lars(replica.variables) if with_lars else None
        self._begin()
        replica.keep_state()
        self.step_queue = StepQueue(self._counter)
        self._updating = False  # the weights are between two steps
        self.spent = TimeSpent()

    def _begin(self) -> None:
        """Go on from the checkpoint to resume from, if there is one."""
        if self.spec.checkpoints.resume is None:
            return
        saved = self._saved(self.spec.checkpoints.resume)
        self._restore(saved, self._resume(saved).get(OWN_STATE, ()))

    def _saved(self, path: str) -> checkpoint.Checkpoint:
        """The checkpoint in a file."""
        return checkpoint.read_for(path, layout_of(self._replica))

    def _restore(self, saved: checkpoint.Checkpoint, own_state: Arrays) -> None:
        """Take what is in a checkpoint, and what the job's own optimizer kept."""
        self._replica.weights[:] = saved.weights
        self._replica.state[:] = saved.state
        self._replica.load()
        self._replica.load_frozen()
        self._set_slots(saved.slots)
        if self.spec.optimizer.kind == OWN and own_state:
            self._replica.set_own_state(own_state[0])

    def _slots(self) -> Slots:
        """What the optimizer keeps."""
        return self._replica.slots(self.spec.optimizer.kind) if self._on_host is None else self._on_host.slots

    def _set_slots(self, slots: Slots) -> None:
        if self._on_host is None:
            self._replica.set_slots(slots)
        else:
            self._on_host.slots = slots

    def train(
        self,
        test: EvaluationSet,
        should_stop: Callable[[], bool],
        on_step: Callable[[TimeSpent], None] = lambda spent: None,
        began_s: Optional[float] = None,
    ) -> RunAccount:
        """Train to the last step; return the run's account.

        on_step: called after every step and evaluation, with where time was spent.
        began_s: when the run's clock started, in monotonic seconds; now if None.
        Raises ValueError where the test set is empty.
        """
        self.clock.begin(began_s)
        require_test_samples(test)
        self._batches.arrivals.begin(self.stream_offset(self.name))
        with self._saves_in_time():
            return self._train(test, should_stop, on_step)

    def _saves_in_time(self) -> ContextManager[None]:
        """Takes checkpoints that the clock asks for, whatever steps do, within ``with``."""
        return regularly(self.save_in_time)

    def _train(
        self, test: EvaluationSet, should_stop: Callable[[], bool], on_step: Callable[[TimeSpent], None]
    ) -> RunAccount:
        while True:
            if should_stop():
                self.stop(STOPPED)
            item = self.step_queue.take(self.name)
            if item.kind == FINISH:
                return self.end()
            if item.kind == EVALUATE:
                self._evaluate(item, test)
            else:
                self._step_when_samples_are_there(item, should_stop)
            on_step(self.spent)
            self.show_progress()

    def _step_when_samples_are_there(self, item: WorkItem, should_stop: Callable[[], bool]) -> None:
        self._batches.batch = self._samples_of_step()
        try:
            self._batches.wait(should_stop)
        except WaitInterrupted:
            self.step_queue.abandon(self.name)
        except StreamEnded as ended:
            self._end_stream(ended.end)
        else:
            self._step(item)

    def _samples_of_step(self) -> int:
        return self.batch(self.name)

    def _end_stream(self, end: StreamEnd) -> None:
        """End the run: no more samples arrive."""
        self.emit(Left(self.name, *end))
        self.stop(STREAMS_ENDED)
        self.step_queue.abandon(self.name)

    def _step(self, item: WorkItem) -> None:
        """Compute a gradient and apply it."""
        started, cpu_s = time.perf_counter(), time.process_time()
        size = self._batches.batch
        with clock_of(self._replica):
            batch = next(self._batches)
            data_s = time.perf_counter() - started
            loss = self._gradient(item, batch, size)
        exchange = self._exchange()
        gradient_cpu_s = time.process_time() - cpu_s - exchange.exposed_cpu_s - exchange.hidden_cpu_s
        updating = time.perf_counter()
        with self._lock:  # no checkpoint has the weights of a step that is not counted
            started += time.perf_counter() - updating  # while one was written
            self._updating = True
            with clock_of(self._replica):
                self._update(item)
            if self._has_diverged(loss):
                self._end_diverged(self.name, item.kind, item.step, loss)
            else:
                busy_s = time.perf_counter() - started - exchange.exposed_s
                self._record_times(exchange, busy_s, gradient_cpu_s, data_s)
                self._batch_policy.record(self.name, size, busy_s)
                self._replica.keep_state()
                self._complete_step(loss, self._batches.arrivals.position())
                self._updating = False
        self._end_step()

    def _record_times(self, exchange: ExchangeTime, busy_s: float, gradient_cpu_s: float, data_s: float) -> None:
        """Record where the time of a step was spent."""
        self.spent = self.spent.plus(
            TimeSpent(
                steps=1,
                busy_s=busy_s,
                exchange_s=exchange.exposed_s,
                exchange_cpu_s=exchange.exposed_cpu_s,
                gradient_cpu_s=gradient_cpu_s,
                data_s=data_s,
            )
        )

    def _has_diverged(self, loss: float) -> bool:
        return not math.isfinite(loss)

    def _gradient(self, item: WorkItem, batch: Any, size: int) -> float:
        # Only the aggregation by rates weighs a single gradient other than its mean.
        factor = FACTORS.get(self.spec.run.strategy.aggregation, equal)(size, size, self.spec.run.batch, 1)
        settings = self.spec.optimizer_at(item.step).in_gradients
        return gradient(self._replica, batch, settings._replace(rate=factor * settings.rate))

    def _exchange(self) -> ExchangeTime:
        """What the exchange of the last gradient has taken."""
        return NO_EXCHANGE

    def _update(self, item: WorkItem) -> None:
        replica, optimizer = self._replica, self.spec.optimizer_at(item.step)
        if self._on_host is None:
            replica.update(optimizer)
            return
        replica.fetch()
        self._on_host.apply(replica.weights, replica.gradients, optimizer)
        replica.load()

    def _complete_step(self, loss: float, position: Optional[StreamPosition]) -> None:
        self._count_step(self.name, loss, position)

    def _end_step(self) -> None:
        """What is left to do when a step is counted."""
        with self._lock:
            self._save_when_due()
        self._batches.arrivals.commit(self.saved_offset(self.name))

    def _save_when_due(self) -> None:
        """The next update waits until it is written, so that nothing need be copied."""
        if self._can_save and self._counter.take_due_save():
            self._checkpoint_writer.write(self._snapshot)

    @property
    def _can_save(self) -> bool:
        return not self._updating

    def _evaluate(self, item: WorkItem, test: EvaluationSet) -> None:
        """Evaluate the present weights."""
        scores = evaluate(self._replica, test)
        self.spent = self.spent.plus(TimeSpent(evaluation_s=scores.seconds))
        self.record_evaluation(self.name, item.step, scores)

    def _snapshot(self) -> checkpoint.Checkpoint:
        replica = self._replica
        replica.fetch()
        meta, states = self._meta(), self._batch_policy_state()
        if self.spec.optimizer.kind == OWN:
            states[OWN_STATE] = (replica.own_state(),)
        state = replica.whole_kept_state()  # without what the step under way, if any, has added
        return checkpoint.Checkpoint(replica.weights, self._slots(), state, meta, layout_of(replica), states)

    def _rows(self) -> Dict[str, MemberProgress]:
        return {self.name: self.members[self.name].summary()._replace(connected=True)}
