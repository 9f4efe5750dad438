"""The state of a run: its members, step queue, batch sizes, evaluations and checkpoints."""

import abc
import collections
import contextlib
import math
import threading
from typing import Any, DefaultDict, Dict, Iterable, Iterator, List, Optional, Tuple

from backends.frameworks.base import Arrays
from backends.hosting.checkpoint_writer import CheckpointWriter
from backends.hosting.member_stats import MemberStats
from backends.hosting.run_clock import RunClock
from backends.hosting.step_queue import StepCounter, WorkQueue
from backends.protocol.events import (
    CheckpointWritten,
    Diverged,
    Emit,
    Evaluated,
    MemberProgress,
    Progress,
    RunAccount,
)
from backends.protocol.frames import EVALUATE, Scores, Share
from backends.protocol.json_messages import record
from backends.protocol.stream_statistics import StreamPosition
from backends.strategies.data_injection import InjectionSpec, share_of
from backends.training import checkpoint
from backends.training.batch_size import BATCH_POLICIES
from backends.training.run_spec import RunSpec, divergence_reason, last_evaluated

#: Prefix of the batch policy's arrays in a checkpoint; no member has an empty name.
_BATCH_POLICY_PREFIX = "/"


class RunState(abc.ABC):
    """The part of it that is alike for a server, peers, ranks and a single device.

    Thread-safe. A subclass decides which member does what next: it sets ``step_queue``, whose lock
    guards everything, and calls ``_resume`` before that where the run has a checkpoint.
    emit: called from several threads with the run's events.
    members: figures of all that have ever joined.
    """

    step_queue: WorkQueue

    def __init__(self, spec: RunSpec, emit: Emit) -> None:
        self.spec = spec
        self.emit = emit
        self.clock = RunClock()
        self.members: DefaultDict[str, MemberStats] = collections.defaultdict(MemberStats)
        saves = spec.checkpoints
        every_s = saves.every_s if saves.path is not None else 0.0
        self._counter = StepCounter(spec.run.steps, spec.evaluate_every, saves.every, every_s)
        self._checkpoint_writer = CheckpointWriter(
            saves.path, self._on_checkpoint, on_end=lambda: self._counter.end_save(self.clock.elapsed_s)
        )
        self._batch_policy = BATCH_POLICIES[spec.run.strategy.batching](spec)
        self._injection = InjectionSpec.from_text(spec.inject) if spec.inject else None
        self._present: Tuple[str, ...] = ()  # the names of the members that take part, sorted
        self._stream_offsets: Dict[str, int] = {}  # by member, of the first sample that no step has used
        self._offsets_to_save: Dict[str, int] = {}  # those in the newest checkpoint under way
        self._saved_offsets: Dict[str, int] = {}  # those in the newest that was written
        self._earlier_evaluations: List[Evaluated] = []
        self.evaluations: List[Evaluated] = []  # without those of the run that it resumes
        self.reason: Optional[str] = None  # why the run ends before its last step
        self._diverged = False

    @property
    def _lock(self) -> threading.Condition:
        return self.step_queue.lock

    @property
    def service_s(self) -> Optional[float]:
        """Mean seconds of an update; None before the first, and if several members update."""
        return None

    def _set_present(self, names: Iterable[str]) -> None:
        """These members take part from now on."""
        self._present = tuple(sorted(names))
        self._batch_policy.set_members(self._present)

    def batch(self, name: str) -> int:
        """Samples of a member's next step."""
        with self._lock:
            return self._batch_policy.batch(name)

    def share(self, name: str, step: int) -> Optional[Share]:
        """What a member gives to others in its step of that number; None for nothing."""
        if self._injection is None:
            return None
        with self._lock:
            return share_of(self._injection, self._present, name, self.batch(name), self.spec.seed, step)

    def stream_offset(self, name: str) -> int:
        """Where a member's stream of samples goes on, also for one that left and comes back."""
        with self._lock:
            return self._stream_offsets.get(name, 0)

    def saved_offset(self, name: str) -> int:
        """The offset of a member's stream, before which a checkpoint contains all samples."""
        return self._saved_offsets.get(name, 0)

    def _on_checkpoint(self, event: Any) -> None:
        """A checkpoint was written, or could not be; they are written one at a time."""
        if isinstance(event, CheckpointWritten):
            self._saved_offsets = self._offsets_to_save
        self.emit(event)

    def record_stream(self, name: str, position: Optional[StreamPosition]) -> None:
        """Record how far a member's stream is used by the steps made; None without a stream."""
        if position is not None:
            with self._lock:
                self._stream_offsets[name] = position.offset
                self._batch_policy.record_rate(name, position.rate)

    def record_evaluation(self, name: str, step: int, scores: Scores) -> None:
        """Record the scores of an evaluation by a member after ``step`` steps."""
        if not math.isfinite(scores.loss):
            self._end_diverged(name, EVALUATE, step, scores.loss)
            return
        evaluated = Evaluated(step, name, *scores)
        with self._lock:
            self.evaluations.append(evaluated)
            reason = self.spec.stop_rule.reason(self._earlier_evaluations + self.evaluations)
        self.emit(evaluated)
        self.step_queue.complete(name)
        if reason is not None and not self.finished:
            self.stop(reason)

    def _end_diverged(self, name: str, kind: str, step: int, loss: float) -> None:
        """Refuse a member's result that is not finite, and end the run: it cannot recover.

        kind, step: of the member's work item.
        """
        self._diverged = True
        if not self.step_queue.over:  # a member's next step, ordered already, diverges too
            self.emit(Diverged(name, step, str(loss)))
        self.stop(divergence_reason(self.spec, name, kind, step, loss))
        self.step_queue.abandon(name)

    def _count_step(
        self,
        name: str,
        loss: float,
        position: Optional[StreamPosition],
        staleness: int = 0,
        steps: int = 1,
    ) -> None:
        """Count a member's step, or a round of so many; the run's time ends with the last one."""
        with self._lock:
            self.members[name].count_step(loss, staleness, steps)
            self.record_stream(name, position)
            if self.step_queue.complete(name, steps) == self.spec.run.steps:
                self.clock.end()

    def stop(self, reason: str) -> None:
        """End the run; the first reason counts."""
        self.reason = self.reason or reason
        self.clock.end()
        self.step_queue.stop()

    @property
    def finished(self) -> bool:
        """Whether all steps and the last evaluation are done, as they should."""
        return self.step_queue.finished

    def progress(self) -> Progress:
        """The progress of the run, for the live table."""
        return Progress(self.step_queue.done, self.spec.run.steps, self.clock.elapsed_s, self._rows())

    def _rows(self) -> Dict[str, MemberProgress]:
        return {name: member.summary() for name, member in list(self.members.items())}

    def show_progress(self) -> None:
        """Emit the progress of the run, unless it was not long ago."""
        if self.clock.shows_progress():
            self._emit_progress()

    def _emit_progress(self) -> None:
        self.emit(self.progress())

    def save_in_time(self) -> None:
        """Take a checkpoint that the clock asks for; called again and again, whatever steps do."""
        with self._lock:
            self._see_clock()
            if self._counter.save_due and not self.step_queue.over:
                self._save_when_due()

    def _see_clock(self) -> None:
        self._counter.see_clock(self.clock.elapsed_s, self._is_saving)

    @property
    def _is_saving(self) -> bool:
        """Whether a checkpoint is being written, or handed over for that."""
        return self._checkpoint_writer.is_writing

    @abc.abstractmethod
    def _save_when_due(self) -> None:
        """Take the checkpoint that is due, or have it taken; called under the lock."""

    @contextlib.contextmanager
    def saved_on_failure(self) -> Iterator[None]:
        """Save what has been trained where an error ends the run."""
        try:
            yield
        except BaseException:
            self.save_after_failure()
            raise

    def save_after_failure(self) -> None:
        """End the run with a last checkpoint, where there is something to save."""
        self.step_queue.stop()
        self._write_last_checkpoint()
        self._emit_progress()

    def end(self, cpu_s: float = 0.0) -> RunAccount:
        """Write the last checkpoint; emit the last progress, and return the account of the run.

        cpu_s: processor seconds of hosting it.
        """
        self.clock.end()
        self._write_last_checkpoint()
        self._emit_progress()
        return RunAccount(
            *self.progress(),
            finished=self.finished,
            reason=None if self.finished else self.reason,
            evaluations=tuple(self.evaluations),
            service_s=self.service_s,
            cpu_s=cpu_s,
        )

    def _resume(self, saved: checkpoint.Checkpoint) -> Dict[str, Arrays]:
        """Resume from a checkpoint; return the states of its members.

        Raises ValueError for one of another optimizer.
        """
        checkpoint.require_optimizer(saved.meta, self.spec.shared_kind)
        self._counter.resume(int(saved.meta["step"]), last_evaluated(saved.meta))
        self._earlier_evaluations = [record(Evaluated, each) for each in saved.meta["evaluations"]]
        self._stream_offsets = dict(saved.meta.get("streams", {}))
        prefix, states = _BATCH_POLICY_PREFIX, saved.member_states
        self._batch_policy.restore({key[len(prefix) :]: states[key] for key in states if key.startswith(prefix)})
        return {key: states[key] for key in states if not key.startswith(prefix)}

    def _batch_policy_state(self) -> Dict[str, Arrays]:
        """The batch policy's arrays, under the names they have in a checkpoint."""
        return {_BATCH_POLICY_PREFIX + label: arrays for label, arrays in self._batch_policy.state().items()}

    def _meta(self) -> Dict[str, Any]:
        evaluations = [dict(each._asdict()) for each in self._earlier_evaluations + self.evaluations]
        settled = dict(self.spec.checkpoints.description, optimizer=self.spec.shared_kind)
        offsets = self._offsets_of_save()
        if offsets:
            self._offsets_to_save = settled["streams"] = offsets
        return dict(settled, step=self.step_queue.done - self._steps_since_save(), evaluations=evaluations)

    def _offsets_of_save(self) -> Dict[str, int]:
        """Where the streams of members go on after the steps in a checkpoint."""
        return dict(self._stream_offsets)

    def _steps_since_save(self) -> int:
        """Steps that were made while a checkpoint was handed over, and are not in it."""
        return 0

    @abc.abstractmethod
    def _snapshot(self) -> checkpoint.Checkpoint:
        """A copy of everything that a checkpoint contains."""

    @property
    def _can_save(self) -> bool:
        """Whether there is something to save."""
        return True

    def _write_last_checkpoint(self) -> None:
        """Write the final state; after divergence the previous checkpoint is kept."""
        self._checkpoint_writer.join()
        with self._lock:
            if self._can_save and not self._diverged and (self.finished or self._counter.has_made_steps):
                self._checkpoint_writer.write(self._snapshot)
