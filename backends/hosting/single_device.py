"""A cluster of one device trains without a network: its accelerator computes and updates."""

import math
import time
from typing import Any, Callable, Dict, Optional, Tuple

from backends.data.arrivals import StreamEnded, WaitInterrupted, never
from backends.data.loader import BatchSource, EvaluationSet
from backends.frameworks.base import OWN_STATE, Replica, layout_of
from backends.frameworks.layout import Layout
from backends.frameworks.optimizer import LARS, OWN, Slots
from backends.hosting.member_stats import MemberStats
from backends.hosting.run_state import RunState
from backends.hosting.step_queue import StepQueue, WorkItem, resumed_queue
from backends.optimizers.base import FlatOptimizer
from backends.optimizers.lars import Lars
from backends.protocol.events import Emit, Left, Progress, RunAccount, TimeSpent
from backends.protocol.frames import EVALUATE, FINISH
from backends.strategies.aggregation_rules import FACTORS, equal
from backends.training import checkpoint
from backends.training.compute_clock import clock_of
from backends.training.run_spec import STOPPED, RunSpec
from backends.training.step import evaluate, gradient, require_test_samples
from backends.training.stopping import STREAMS_ENDED

NAME = "self"
PROGRESS_INTERVAL_S = 0.5


def run(
    spec: RunSpec,
    replica: Replica,
    batches: BatchSource,
    test: EvaluationSet,
    emit: Emit,
    should_stop: Callable[[], bool],
    name: str = NAME,
    began: Optional[float] = None,
    on_step: Optional[Callable[[TimeSpent], None]] = None,
) -> Tuple[RunAccount, TimeSpent]:
    """Train to the last step; return the run's account, and where time was spent.

    began: when the run's clock started, in monotonic seconds; now if None.
    on_step: called after every step and evaluation.
    Raises OSError where there is no checkpoint to resume from.
    Raises ValueError where that is of another model, damaged or past the last step, and where the
    test set is empty.
    """
    device = SingleDevice(spec, replica, emit, name, began)
    return work(device, batches, test, should_stop, on_step)


def work(
    device: "SingleDevice",
    batches: BatchSource,
    test: EvaluationSet,
    should_stop: Callable[[], bool],
    on_step: Optional[Callable[[TimeSpent], None]] = None,
) -> Tuple[RunAccount, TimeSpent]:
    """Make the steps and evaluations of a device's queue; see ``run``."""
    require_test_samples(test)
    batches.arrivals.begin(device.stream_offset(device.name))
    while True:
        if should_stop():
            device.stop(STOPPED)
        item = device.step_queue.take(device.name)
        if item.kind == FINISH:
            return device.end(), device.spent
        if item.kind == EVALUATE:
            device.evaluate(item, test)
        else:
            device.step_with_samples(item, batches, should_stop)
        if on_step is not None:
            on_step(device.spent)
        device.show_progress()


class SingleDevice(RunState):
    """A run on one device, whose framework updates the weights; only LARS does so in numpy.

    abandons_steps: whether a step whose samples have not arrived may be left out at the end.
    """

    step_queue: StepQueue
    abandons_steps = True

    def __init__(self, spec: RunSpec, replica: Replica, emit: Emit, name: str, began: Optional[float]) -> None:
        super().__init__(spec, emit)
        self._replica = replica
        self.name = name
        self._began = time.monotonic() if began is None else began
        self._cpu_s = time.process_time()
        self._stats = MemberStats()
        self._membership.join(name)
        with_lars = spec.optimizer.kind == LARS
        self._on_host: Optional[FlatOptimizer] = Lars(replica.variables) if with_lars else None
        self._shown_s = time.monotonic()
        self.step_queue = self._begin()
        self.spent = TimeSpent()

    def _begin(self) -> StepQueue:
        if self.spec.checkpoints.resume is None:
            return StepQueue(self.spec.run.steps, 0, self.spec.evaluate_every)
        return resumed_queue(self.spec, self._restored())

    def _restored(self) -> Dict[str, Any]:
        """Go on from the checkpoint to resume from; return its ``meta``."""
        assert self.spec.checkpoints.resume is not None, "the caller asked"
        saved = checkpoint.read_for(self.spec.checkpoints.resume, self._layout)
        self._replica.weights[:] = saved.weights
        self._replica.state[:] = saved.state
        self._replica.load()
        states = self._resume(saved)
        self._set_slots(saved.slots)
        if self.spec.optimizer.kind == OWN and OWN_STATE in states:
            self._replica.set_own_state(states[OWN_STATE][0])
        return saved.meta

    def _slots(self) -> Slots:
        """What the optimizer keeps."""
        return self._replica.slots(self.spec.optimizer.kind) if self._on_host is None else self._on_host.slots

    def _set_slots(self, slots: Slots) -> None:
        if self._on_host is None:
            self._replica.set_slots(slots)
        else:
            self._on_host.slots = slots

    def samples_of_step(self) -> int:
        """Samples of the next step."""
        return self.batch(self.name)

    def step_with_samples(self, item: WorkItem, batches: BatchSource, should_stop: Callable[[], bool]) -> None:
        """Make a step, as soon as its samples have arrived."""
        batches.batch = self.samples_of_step()
        try:
            batches.wait(should_stop if self.abandons_steps else never)
        except WaitInterrupted:
            self.step_queue.abandon(self.name)
        except StreamEnded as end:
            self.end_stream(str(end))
        else:
            self.step(item, batches)

    def step(self, item: WorkItem, batches: BatchSource) -> None:
        """Compute a gradient and apply it."""
        started, cpu = time.perf_counter(), time.process_time()
        size = batches.batch
        with clock_of(self._replica):
            batch = next(batches)
            data_s = time.perf_counter() - started
            loss = self._gradient(item, batch, size)
            if not math.isfinite(loss):
                self._end_diverged(self.name, item.kind, item.step, loss)
                return
            gradient_cpu_s = time.process_time() - cpu
            self._update(item)
        busy_s = time.perf_counter() - started
        self.spent = self.spent.plus(TimeSpent(1, busy_s, 0.0, 0.0, 0.0, gradient_cpu_s, data_s))
        self._batch_policy.record(self.name, size, busy_s)
        self.record_stream(self.name, batches.arrivals.position())
        batches.arrivals.commit(self.saved_offset(self.name))
        self._complete(loss)

    def end_stream(self, reason: str) -> None:
        """End the run: no more samples arrive."""
        self._emit(Left(self.name, reason))
        self.stop(STREAMS_ENDED)
        self.step_queue.abandon(self.name)

    def _gradient(self, item: WorkItem, batch: Any, size: int) -> float:
        # Only the aggregation by rates weighs a single gradient other than its mean.
        factor = FACTORS.get(self.spec.run.strategy.aggregation, equal)(size, size, self.spec.run.batch, 1)
        settings = self.spec.optimizer_at(item.step).in_gradients
        return gradient(self._replica, batch, settings._replace(rate=factor * settings.rate))

    def _update(self, item: WorkItem) -> None:
        replica, optimizer = self._replica, self.spec.optimizer_at(item.step)
        if self._on_host is None:
            replica.update(optimizer)
            return
        replica.fetch()
        self._on_host.apply(replica.weights, replica.gradients, optimizer)
        replica.load()

    def _complete(self, loss: float) -> None:
        self._stats.count_step(loss, 0)
        done, every = self.step_queue.complete(self.name), self.spec.checkpoints.every
        self._mark_end()
        if done < self.spec.run.steps and every and done % every == 0:
            self._checkpoint_writer.write(self._snapshot, self._layout)

    def evaluate(self, item: WorkItem, test: EvaluationSet) -> None:
        """Evaluate the present weights."""
        scores = evaluate(self._replica, test)
        self.spent = self.spent.plus(TimeSpent(evaluation_s=scores.seconds))
        self.record_evaluation(self.name, item.step, scores)

    @property
    def _layout(self) -> Layout:
        return layout_of(self._replica)

    def _snapshot(self) -> checkpoint.Checkpoint:
        replica = self._replica
        replica.fetch()
        meta, states = self._meta(), self._batch_policy_state()
        if self.spec.optimizer.kind == OWN:
            states[OWN_STATE] = (replica.own_state(),)
        return checkpoint.Checkpoint(replica.weights, self._slots(), replica.state, meta, states)

    def end(self) -> RunAccount:
        """Write the last checkpoint; return the account."""
        self.write_last_checkpoint()
        progress = self.current_progress()
        account = self.account(progress, time.process_time() - self._cpu_s)
        self._emit(progress)
        return account

    def show_progress(self) -> None:
        """Emit the progress of the run, unless it was not long ago."""
        if time.monotonic() - self._shown_s > PROGRESS_INTERVAL_S:
            self._shown_s = time.monotonic()
            self._emit(self.current_progress())

    def current_progress(self) -> Progress:
        """The progress of the run, for the live table."""
        elapsed_s = (self.ended or time.monotonic()) - self._began
        return self.progress(elapsed_s, {self.name: self._stats.summary()._replace(connected=True)})
