"""The ranks of a run make the same steps together, and the framework averages their gradients.

A round is a step of every rank. All ranks hold equal weights, and each computes by itself what
comes next, so that nobody hands out work. They meet every half a second: a rank that wants to end
the run, because it was told to or because its loss is not finite, says so there, and all end at
the same round. Between two meetings nothing but gradients is exchanged, so that batches that follow
the rates of streams change at meetings.
"""

import contextlib
import functools
import hashlib
import math
from typing import Any, Callable, ContextManager, Dict, Optional, Sequence

import numpy as np

from backends.data.loader import BatchSource, EvaluationSet
from backends.frameworks.base import Replica, layout_of
from backends.frameworks.optimizer import OWN
from backends.frameworks.process_group import ExchangeTime, ProcessGroup
from backends.hosting.rank_batches import RankBatches
from backends.hosting.rank_meetings import DIVERGED, GOES_ON, MeetingOutcome, RankMeetings
from backends.hosting.single_device import SingleDevice
from backends.hosting.step_queue import WorkItem
from backends.protocol.events import Diverged, Emit, Joined, Left, MemberProgress, RunAccount
from backends.protocol.frames import STEP
from backends.protocol.stream_statistics import StreamEnd, StreamPosition
from backends.training import checkpoint
from backends.training.compute_clock import clock_of
from backends.training.run_spec import OTHER_MODEL, STOPPED, RunSpec, divergence_reason
from backends.training.step import combine_parts
from backends.training.stopping import EARLY_ENDS, STREAMS_ENDED


def _require_one_model(replica: Replica, group: ProcessGroup, names: Sequence[str]) -> None:
    digest = hashlib.sha256(repr(layout_of(replica)).encode()).hexdigest()
    digests = group.gather((float(int(digest[:12], 16)),))[:, 0]  # of 48 bits, which a float holds
    for name, other in zip(names, digests):
        if other != digests[0]:
            raise ValueError("%s: %s" % (name, OTHER_MODEL))


class Rank(SingleDevice):
    """One rank of a run. What is of the whole run is emitted by the first alone.

    names: of all ranks, in order. The first evaluates and writes checkpoints.
    on_end: called when all ranks have made their last exchange: they leave in any order.
    Raises GroupError where the exchange with the others breaks off, ValueError on all ranks where
    they have built different models.
    """

    _batches: RankBatches

    def __init__(
        self,
        spec: RunSpec,
        replica: Replica,
        group: ProcessGroup,
        names: Sequence[str],
        batches: BatchSource,
        emit: Emit,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        _require_one_model(replica, group, names)
        group.average_gradients(replica, batches.batch, clock_of(replica).waits)
        self._group = group
        self._on_end = on_end
        self._names = names
        self._is_first = group.rank == 0
        self._meetings = RankMeetings(group, names)
        self._counting = group.size  # ranks whose gradients count
        own = RankBatches(spec, group, batches, lambda: self.batch(self.name))
        super().__init__(spec, replica, own, emit, names[group.rank])
        if own.may_change:
            self._agree(group.gather((own.wanted,))[:, 0])
        self._meetings.begin()
        if self._is_first:
            for name in names:
                emit(Joined(name))

    def _begin(self) -> None:
        """All go on from the first rank's checkpoint, if it has one."""
        super()._begin()
        resumed = int(self.spec.checkpoints.resume is not None)
        offsets = [self._stream_offsets.get(name, 0) for name in self._names]
        found = np.array([resumed, self._counter.made, self._counter.evaluated, *offsets], np.float64)
        self._group.broadcast(found)
        resumed, made, evaluated, *offsets = map(int, found)
        if resumed:
            self._counter.resume(made, evaluated)
            self._stream_offsets = dict(zip(self._names, offsets))
            self._receive_weights()

    def _receive_weights(self) -> None:
        replica, slots = self._replica, self._slots()
        replica.fetch()
        for values in (replica.weights, replica.state, *slots.values()):
            self._group.broadcast(values)
        replica.load()
        replica.load_frozen()
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

    def _samples_of_step(self) -> int:
        return self._batches.size

    def _gradient(self, item: WorkItem, batch: Any, size: int) -> float:
        # The clock of the replica stands still while others are waited for.
        compute = functools.partial(self._group.gradient, self._replica)
        return combine_parts(self._replica, batch, self.spec.optimizer_at(item.step).in_gradients, compute)

    def _exchange(self) -> ExchangeTime:
        return self._group.exchange()

    def _end_step(self) -> None:
        self._save_when_due()
        if self._meetings.is_due():
            self._meet()
            self._save_when_due()
            if self.spec.run.stream is not None:
                self._commit_saved_offsets()

    def _saves_in_time(self) -> ContextManager[Any]:
        """All ranks take part in a checkpoint: the first one's clock speaks at their meetings."""
        return contextlib.ExitStack()

    def _save_when_due(self) -> None:
        if self._counter.take_due_save():
            self._gather_state()
            self._checkpoint_writer.write_in_background(self._snapshot)

    def _has_diverged(self, loss: float) -> bool:
        """A batch that is computed again after the end of the stream does not count."""
        return not self._batches.over and super()._has_diverged(loss)

    def _complete_step(self, loss: float, position: Optional[StreamPosition]) -> None:
        self.record_stream(self.name, position)
        if not self._batches.over:
            self.members[self.name].count_step(loss, 0)
        self._complete_round()

    def _complete_round(self) -> None:
        if self.step_queue.complete(self.name, self._counting) == self.spec.run.steps:
            self.clock.end()

    def stop(self, reason: str) -> None:
        """Ask all ranks to end the run at their next meeting; the first reason counts."""
        self.reason = self.reason or reason
        self._meetings.stop(diverged=reason not in (STOPPED,) + EARLY_ENDS)

    def _end_diverged(self, name: str, kind: str, step: int, loss: float) -> None:
        self.emit(Diverged(name, step, str(loss)))
        self._meetings.diverge(step, loss)
        self.stop(divergence_reason(self.spec, name, kind, step, loss))
        self._complete_round()  # for the others go on as well, to the next meeting

    def _meet(self) -> None:
        """Tell the others how this rank is, and end the run if one of them wants to."""
        self._see_clock()
        found = self._meetings.meet(self.members[self.name].loss, self._batches.wanted, self._counter.save_due)
        self._counter.save_due = found.saves and found.says == GOES_ON
        if found.says != GOES_ON:
            self._end_for_all(found)
        elif self._batches.may_change:
            self._agree(found.wanted)

    def _agree(self, wanted: np.ndarray) -> None:
        """Go on with what the ranks want, (ranks,), or end the run where none has samples."""
        present = self._batches.agree(wanted)
        if present:
            self._counting = present
        else:
            self.reason = self.reason or STREAMS_ENDED
            self.step_queue.stop()

    def _end_for_all(self, found: MeetingOutcome) -> None:
        if found.says == DIVERGED and found.name != self.name:
            self.reason = divergence_reason(self.spec, found.name, STEP, found.step, found.loss)
        self.reason = self.reason or STOPPED
        self._diverged |= found.says == DIVERGED
        self.step_queue.stop()

    @property
    def finished(self) -> bool:
        return super().finished and not self._diverged

    def _evaluate(self, item: WorkItem, test: EvaluationSet) -> None:
        """The first rank evaluates; the others wait for it in the next round."""
        self._average_state()
        if self._is_first:
            super()._evaluate(item, test)
        else:
            self.step_queue.complete(self.name)

    def _average_state(self) -> None:
        """Give running statistics, which each rank keeps of its own samples, their mean."""
        if self._replica.changing.size:
            self._replica.fetch()
            self._group.average(self._replica.changing)
            self._replica.load()
            self._replica.keep_state()

    def _gather_state(self) -> None:
        """Let the first rank know what a checkpoint needs of all, also how far streams are used."""
        self._average_state()
        if self.spec.run.stream is not None:
            rows = self._group.gather((float(self.stream_offset(self.name)),))
            self._stream_offsets = dict(zip(self._names, map(int, rows[:, 0])))

    def _commit_saved_offsets(self) -> None:
        """Let the source of each rank know what the first rank has saved."""
        saved = np.array([float(self.saved_offset(name)) for name in self._names])
        self._group.broadcast(saved)
        self._batches.arrivals.commit(int(saved[self._group.rank]))

    def _end_stream(self, end: StreamEnd) -> None:
        try:
            self._batches.end()
        except ValueError as error:
            raise ValueError("%s: %s: %s" % (self.name, end.reason, error)) from None
        self.emit(Left(self.name, *end))
        self.step_queue.abandon(self.name)  # and take it again

    def save_after_failure(self) -> None:
        """What this rank knows alone, which of streams is not enough."""
        if self.spec.run.stream is None:
            super().save_after_failure()

    def _snapshot(self) -> checkpoint.Checkpoint:
        """Copies: the next rounds are made while they are written."""
        saved = super()._snapshot()
        return saved._replace(weights=saved.weights.copy())

    def end(self, cpu_s: float = 0.0) -> RunAccount:
        """Meet for the last time; the first rank then writes the last checkpoint."""
        if not self._diverged:  # which all know alike, unlike what this rank alone has found
            self._gather_state()
        self._meet()
        self._on_end()
        self._group.close()
        return super().end(cpu_s)

    def _emit_progress(self) -> None:
        if self._is_first:
            super()._emit_progress()

    def show_progress(self) -> None:
        """After a meeting, from which it is known."""
        if not self._meetings.rounds:
            self._emit_progress()

    def _rows(self) -> Dict[str, MemberProgress]:
        own = self.members[self.name].summary()._replace(connected=True)
        losses = zip(self._names, self._meetings.losses)
        return {name: own._replace(loss=None if math.isnan(loss) else float(loss)) for name, loss in losses}
