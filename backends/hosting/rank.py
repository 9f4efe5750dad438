"""The ranks of a run make the same steps together, and the framework averages their gradients.

A round is a step of every rank. All ranks hold equal weights, and each computes by itself what
comes next, so that nobody hands out work. They meet every half a second: a rank that wants to end
the run, because it was told to or because its loss is not finite, says so there, and all end at
the same round. Between two meetings nothing but gradients is exchanged, so that batches that follow
the rates of streams change at meetings.
"""

import functools
import hashlib
import math
import time
from typing import Callable, Dict, Optional, Sequence, Tuple

import numpy as np

from backends.data.loader import BatchSource, EvaluationSet
from backends.frameworks.base import Replica, layout_of
from backends.frameworks.optimizer import OWN
from backends.frameworks.process_group import ProcessGroup
from backends.hosting import single_device
from backends.hosting.rank_batches import RankBatches
from backends.hosting.rank_meetings import DIVERGED, GOES_ON, MeetingOutcome, RankMeetings
from backends.hosting.round_queue import RoundQueue
from backends.hosting.single_device import SingleDevice
from backends.hosting.step_queue import RunProgress, WorkItem
from backends.protocol.events import Diverged, Emit, Joined, Left, MemberProgress, Progress, RunAccount, TimeSpent
from backends.protocol.frames import STEP
from backends.training import checkpoint
from backends.training.compute_clock import clock_of
from backends.training.run_spec import OTHER_MODEL, STOPPED, RunSpec, divergence_reason, last_evaluated
from backends.training.step import combine_parts, evaluate
from backends.training.stopping import EARLY_ENDS, STREAMS_ENDED


def run(
    spec: RunSpec,
    replica: Replica,
    group: ProcessGroup,
    names: Sequence[str],
    data: Tuple[BatchSource, EvaluationSet],
    emit: Emit,
    should_stop: Callable[[], bool],
    began: Optional[float] = None,
    on_step: Optional[Callable[[TimeSpent], None]] = None,
    on_end: Callable[[], None] = lambda: None,
) -> Tuple[RunAccount, TimeSpent]:
    """Train to the last round; as ``single_device.run``, on every rank at once.

    names: of all ranks, in order. The first evaluates and writes checkpoints.
    on_end: called when all ranks have made their last exchange: they leave in any order.
    Raises GroupError where the exchange with the others breaks off, ValueError on all ranks where
    they have built different models.
    """
    _require_one_model(replica, group, names)
    group.average_gradients(replica, data[0].batch, clock_of(replica).waits)
    rank = Rank(spec, replica, group, names, data[0], emit, began, on_end)
    return single_device.work(rank, *data, should_stop, on_step)


def _require_one_model(replica: Replica, group: ProcessGroup, names: Sequence[str]) -> None:
    digest = hashlib.sha256(repr(layout_of(replica)).encode()).hexdigest()
    digests = group.gather((float(int(digest[:12], 16)),))[:, 0]  # of 48 bits, which a float holds
    for name, other in zip(names, digests):
        if other != digests[0]:
            raise ValueError("%s: %s" % (name, OTHER_MODEL))


class Rank(SingleDevice):
    """One rank of a run. What is of the whole run is emitted by the first alone."""

    step_queue: RoundQueue
    abandons_steps = False  # for the others wait in it

    def __init__(
        self,
        spec: RunSpec,
        replica: Replica,
        group: ProcessGroup,
        names: Sequence[str],
        batches: BatchSource,
        emit: Emit,
        began: Optional[float],
        on_end: Callable[[], None],
    ) -> None:
        self._group = group
        self._batches = RankBatches(spec, group, batches, lambda: self.batch(self.name))
        self._on_end = on_end
        self._names = names
        self._is_first = group.rank == 0
        self._meetings = RankMeetings(group, names)
        super().__init__(spec, replica, emit, names[group.rank], began)
        if self._batches.may_change:
            self._agree(group.gather((self._batches.wanted,))[:, 0])
        self._meetings.begin()
        if self._is_first:
            for name in names:
                emit(Joined(name))

    def _begin(self) -> RoundQueue:
        """All go on from the first rank's checkpoint, if it has one."""
        counts = np.zeros(3)  # whether there is one, steps, steps at the last evaluation
        offsets = np.zeros(len(self._names))
        if self.spec.checkpoints.resume is not None:
            meta = self._restored()
            counts[:] = 1, meta["step"], last_evaluated(meta)
            offsets[:] = [self._stream_offsets.get(name, 0) for name in self._names]
        self._group.broadcast(counts)
        resumed, done, evaluated = map(int, counts)
        if resumed:
            self._receive_weights()
            self._group.broadcast(offsets)
            self._stream_offsets = dict(zip(self._names, map(int, offsets)))
        spec = self.spec
        progress = RunProgress(spec.run.steps, done, evaluated, spec.evaluate_every, spec.checkpoints.every)
        return RoundQueue(progress, self._group.size)

    def _receive_weights(self) -> None:
        replica, slots = self._replica, self._slots()
        replica.fetch()
        for values in (replica.weights, replica.state, *slots.values()):
            self._group.broadcast(values)
        replica.load()
        self._set_slots(slots)
        if self.spec.optimizer.kind == OWN:
            self._receive_own_state()

    def _receive_own_state(self) -> None:
        """All ranks have computed the same, so that the first one's optimizer is that of all."""
        state = self._replica.own_state()
        length = np.array([state.size], np.float64)
        self._group.broadcast(length)
        sent = np.zeros(int(length[0]), np.float32)
        sent[: state.size] = state[: sent.size]
        self._group.broadcast(sent)
        self._replica.set_own_state(sent.astype(np.uint8))

    def samples_of_step(self) -> int:
        return self._batches.size

    def step_with_samples(self, item: WorkItem, batches: BatchSource, should_stop: Callable[[], bool]) -> None:
        if self._batches.over:
            self.step(item, batches)
        else:
            super().step_with_samples(item, batches, should_stop)

    def step(self, item: WorkItem, batches: BatchSource) -> None:
        """Compute a gradient, have it averaged, and apply it."""
        started, cpu_s = time.perf_counter(), time.process_time()
        settings = self.spec.optimizer_at(item.step).in_gradients
        with clock_of(self._replica):  # it stands still while others are waited for
            batch = self._batches.draw()
            data_s = time.perf_counter() - started
            compute = functools.partial(self._group.gradient, self._replica)
            loss = combine_parts(self._replica, batch, settings, compute)
        exchange = self._group.exchange()
        gradient_cpu_s = time.process_time() - cpu_s - exchange.exposed_cpu_s - exchange.hidden_cpu_s
        with clock_of(self._replica):
            self._update(item)
        self.record_stream(self.name, batches.arrivals.position())
        busy_s = time.perf_counter() - started - exchange.exposed_s
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
        if self._batches.over:
            self.step_queue.complete(self.name)
        elif not math.isfinite(loss):
            self._end_diverged(self.name, item.kind, item.step, loss)
        else:
            self._stats.count_step(loss, 0)
            self.step_queue.complete(self.name)
        self._after_round()

    def _after_round(self) -> None:
        self._mark_end()
        if self.step_queue.checkpoint_due:
            self._average_state()
            self._share_offsets()
            self._checkpoint_writer.write_in_background(self._snapshot, self._layout)
        if self._meetings.is_due():
            self._meet()
            if self.spec.run.stream is not None:
                self._commit_saved_offsets()

    def stop(self, reason: str) -> None:
        """Ask all ranks to end the run at their next meeting; the first reason counts."""
        self.reason = self.reason or reason
        self._meetings.stop(diverged=reason not in (STOPPED,) + EARLY_ENDS)

    def _end_diverged(self, name: str, kind: str, step: int, loss: float) -> None:
        self._emit(Diverged(name, step, str(loss)))
        self._meetings.diverge(step, loss)
        self.stop(divergence_reason(self.spec, name, kind, step, loss))
        self.step_queue.complete(name)  # for the others go on as well, to the next meeting

    def _meet(self) -> None:
        """Tell the others how this rank is, and end the run if one of them wants to."""
        found = self._meetings.meet(self._stats.loss, self._batches.wanted)
        if found.says != GOES_ON:
            self._end_for_all(found)
        elif self._batches.may_change:
            self._agree(found.wanted)

    def _agree(self, wanted: np.ndarray) -> None:
        """Go on with what the ranks want, (ranks,), or end the run where none has samples."""
        present = self._batches.agree(wanted)
        if present:
            self.step_queue.members = present
        else:
            self.reason = self.reason or STREAMS_ENDED
            self.step_queue.stop()

    def _end_for_all(self, found: MeetingOutcome) -> None:
        if found.says == DIVERGED and found.name != self.name:
            self.reason = divergence_reason(self.spec, found.name, STEP, found.step, found.loss)
        self.reason = self.reason or STOPPED
        self.step_queue.diverged |= found.says == DIVERGED
        self.step_queue.stop()

    def evaluate(self, item: WorkItem, test: EvaluationSet) -> None:
        """The first rank evaluates; the others wait for it in the next round."""
        self._average_state()
        if not self._is_first:
            self.step_queue.complete(self.name)
            return
        scores = evaluate(self._replica, test)
        self.spent = self.spent.plus(TimeSpent(evaluation_s=scores.seconds))
        self.record_evaluation(self.name, item.step, scores)

    def _average_state(self) -> None:
        """Give running statistics, which each rank keeps of its own samples, their mean."""
        if self._replica.state.size:
            self._replica.fetch()
            self._group.average(self._replica.state)
            self._replica.load()

    def _share_offsets(self) -> None:
        """Let the first rank know how far each has used its stream of samples."""
        if self.spec.run.stream is not None:
            rows = self._group.gather((float(self.stream_offset(self.name)),))
            self._stream_offsets = dict(zip(self._names, map(int, rows[:, 0])))

    def _commit_saved_offsets(self) -> None:
        """Let the source of each rank know what the first rank has saved."""
        saved = np.array([float(self.saved_offset(name)) for name in self._names])
        self._group.broadcast(saved)
        self._batches.commit(int(saved[self._group.rank]))

    def end_stream(self, reason: str) -> None:
        try:
            self._batches.end()
        except ValueError as error:
            raise ValueError("%s: %s: %s" % (self.name, reason, error)) from None
        self._emit(Left(self.name, reason))
        self.step_queue.abandon(self.name)  # and take it again

    def _snapshot(self) -> checkpoint.Checkpoint:
        """Copies: the next rounds are made while they are written."""
        saved = super()._snapshot()
        return saved._replace(weights=saved.weights.copy(), state=saved.state.copy())

    def end(self) -> RunAccount:
        """Meet for the last time; the first rank then writes the last checkpoint."""
        if not self.step_queue.diverged:  # which all know alike, unlike what this rank alone has found
            self._average_state()
            self._share_offsets()
        self._meet()
        self._on_end()
        self._group.close()
        self.write_last_checkpoint()
        progress = self.current_progress()
        if self._is_first:
            self._emit(progress)
        return self.account(progress, 0.0)  # hosting takes nothing besides the steps

    def show_progress(self) -> None:
        """Emit it after a meeting, from which it is known."""
        if self._is_first and not self._meetings.rounds:
            self._emit(self.current_progress())

    def current_progress(self) -> Progress:
        """The progress of the run, with a row for every rank."""
        elapsed_s = (self.ended or time.monotonic()) - self._began
        own = self._stats.summary()._replace(connected=True)
        rows: Dict[str, MemberProgress] = {
            name: own._replace(loss=None if math.isnan(loss) else float(loss))
            for name, loss in zip(self._names, self._meetings.losses)
        }
        return self.progress(elapsed_s, rows)
