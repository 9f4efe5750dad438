"""The state of a run of peers: their scheduler, batch sizes and checkpoints in progress."""

import math
from typing import Callable, Dict, Optional, Tuple

import numpy as np

from backends.frameworks.base import Arrays
from backends.frameworks.layout import Layout
from backends.frameworks.optimizer import SLOT_NAMES
from backends.hosting.run_host import HostedRunState
from backends.network.framing import WireError
from backends.peers.epochs import EpochScheduler, PeerWorkItem
from backends.peers.handed_over import STEPS, HandedOver
from backends.protocol.events import Emit
from backends.protocol.frames import (
    STATE,
    STREAM,
    WEIGHTS,
    MemberFailed,
    PeerAddress,
    PeerHello,
    PeerStep,
    PeerStepDone,
)
from backends.strategies import knowledge_transfer
from backends.training import checkpoint
from backends.training.local_steps import LocalSteps, RoundPlan
from backends.training.run_spec import RunSpec, Unfit

#: Seconds that the first epoch waits for members that are still building their models.
FIRST_EPOCH_WAIT_S = 60.0
#: Seconds after which a checkpoint is written without a peer that has not handed over what it has,
#: where none waits for another.
HAND_OVER_S = 60.0
ORPHANED = "no member is left that has the weights"


class PeerRunState(HostedRunState):
    """Holds weights only for members that join and for checkpoints.

    layout: of the run's model, known from the first member or checkpoint on.
    weights: weights, what the optimizer keeps, and state, for members that join.
    Raises ValueError or OSError where the checkpoint to resume from cannot be used.
    """

    step_queue: EpochScheduler

    def __init__(self, spec: RunSpec, emit: Emit) -> None:
        super().__init__(spec, emit)
        self._losses: Dict[str, knowledge_transfer.LossWindow] = {}
        self._addresses: Dict[str, PeerAddress] = {}
        self._first_digest = ""
        self._handed_over = HandedOver()
        self._ending = False
        self._local_steps = LocalSteps(spec.run.strategy.local, spec.run.strategy.outer, spec.step_s)
        self._round: Optional[Tuple[Tuple[int, int], RoundPlan]] = None  # by epoch and number
        self.layout: Optional[Layout] = None
        self.weights: Arrays = ()
        self._saved: Dict[str, Dict[str, Arrays]] = {}
        if spec.checkpoints.resume is not None:
            self._resume_from(spec.checkpoints.resume)
        self.step_queue = EpochScheduler(
            self._counter,
            spec.run.strategy.sync,
            self._set_present,
            expected=spec.members,
            patience_s=FIRST_EPOCH_WAIT_S if spec.members > 1 else 0.0,
            host=spec.host,
            by_rounds=bool(spec.run.strategy.local),
        )

    def _resume_from(self, path: str) -> None:
        saved = checkpoint.read(path)
        self.layout = saved.layout
        self.weights = (saved.weights, *saved.slots.values(), saved.state)
        for key, arrays in self._resume(saved).items():
            name, _, label = key.partition("/")
            self._saved.setdefault(name, {})[label] = arrays

    # -- members -----------------------------------------------------------------------------------

    def join(self, name: str, hello: PeerHello) -> Dict[str, Arrays]:
        """Add a member; return the arrays that it resumes from, none in a new run.

        A member whose initial weights equal the first member's need not receive them.
        Raises Unfit where its model differs from the run's.
        """
        with self._lock:
            arrays = self._join(name, hello)
            offset = self.stream_offset(name)
            return dict(arrays, **{STREAM: (np.array([offset], np.int64),)}) if offset else arrays

    def _join(self, name: str, hello: PeerHello) -> Dict[str, Arrays]:
        self.layout = self.layout or hello.layout
        if hello.layout != self.layout:
            raise Unfit
        self._addresses[name] = PeerAddress(name, hello.address, hello.port)
        self._losses[name] = knowledge_transfer.LossWindow()
        if self.spec.checkpoints.resume is not None and not self.step_queue.epoch:
            return self._join_resumed(name)
        self._first_digest = self._first_digest or hello.digest
        has_weights = not self.step_queue.epoch and hello.digest == self._first_digest
        self.step_queue.join(name, 0 if has_weights else None)
        return {}

    def _join_resumed(self, name: str) -> Dict[str, Arrays]:
        """Add a member to the first epoch of a resumed run.

        A new one has the step, and the weights, of the saved member that is furthest: others that
        lag behind may take its weights, which must be those of that step.
        """
        own = dict(self._saved.get(name) or self._furthest())
        usual = (np.array([self.step_queue.done // self.spec.members]),)
        self.step_queue.join(name, int(own.pop(STEPS, usual)[0][0]))
        return dict({WEIGHTS: self.weights[:-1], STATE: self.weights[-1:]}, **own)

    def _furthest(self) -> Dict[str, Arrays]:
        """The step and the weights of the saved member with most steps; of its weights, its own."""
        saved = [arrays for arrays in self._saved.values() if STEPS in arrays]
        if not saved:
            return {}
        first = max(saved, key=lambda arrays: int(arrays[STEPS][0][0]))
        return {label: first[label] for label in (STEPS, WEIGHTS) if label in first}

    def leave(self, name: str, lost: bool) -> None:
        """Remove a member; the run ends with the last one that has the weights."""
        with self._lock:
            self.step_queue.leave(name)
            if not self.step_queue.over:
                self._handed_over.drop(name)
                self._write_when_ready()
                if self.step_queue.orphaned:
                    self.stop(ORPHANED)

    # -- steps -------------------------------------------------------------------------------------

    def take(self, name: str, gone: Callable[[], bool]) -> PeerWorkItem:
        return self.step_queue.take(name, gone)

    def take_ahead(self, name: str) -> Optional[PeerWorkItem]:
        """The item after a member's step, where that may be ordered now; else None.

        A member whose stream of samples has ended leaves without it.
        """
        return None if self.spec.run.stream else self.step_queue.take_ahead(name)

    def step_order(self, name: str, item: PeerWorkItem) -> PeerStep:
        """The order for a member's step."""
        with self._lock:
            made_by_all = min(self.spec.run.steps, item.step * len(item.members))
            order = PeerStep(
                step=item.step,
                epoch=item.epoch,
                members=tuple(self._addresses[each] for each in item.members),
                batch=self._batch_policy.batch(name),
                rate=self.spec.optimizer_at(made_by_all).rate,
                gives_to=self._gives_to(name, item),
                saved_offset=self.saved_offset(name),
                share=self.share(name, item.step),
            )
            return self._with_round(name, item, order) if self.spec.run.strategy.local else order

    def _with_round(self, name: str, item: PeerWorkItem, order: PeerStep) -> PeerStep:
        """The order for a member's part of a round, which is planned once for all members."""
        done, key = self.step_queue.done, (item.epoch, item.step)
        if self._round is None or self._round[0] != key:
            self._round = key, self._local_steps.plan(item.members, done, self.spec.run.steps - done)
        plan = self._round[1]
        return order._replace(
            rate=self.spec.optimizer_at(done).rate, local=plan.order(plan.steps[name]), outer=plan.outer
        )

    def _gives_to(self, name: str, item: PeerWorkItem) -> Tuple[str, ...]:
        """The members that receive this member's weights now (knowledge transfer)."""
        to_whom = self.spec.run.strategy.knowledge
        if to_whom == "none" or not knowledge_transfer.due(item.step):
            return ()
        losses = {each: self._losses[each].mean() for each in item.members}
        is_best = knowledge_transfer.best(losses) == name
        return tuple(knowledge_transfer.takers(losses, to_whom)) if is_best else ()

    def complete_step(self, name: str, item: PeerWorkItem, answer: PeerStepDone) -> None:
        """Count a member's step; a loss that is not finite ends the run."""
        if not math.isfinite(answer.loss):
            self._end_diverged(name, item.kind, item.step, answer.loss)
            return
        with self._lock:
            self._local_steps.record(name, answer.steps, answer.seconds)
            self._losses[name].add(answer.loss)
            self._batch_policy.record(name, answer.batch, answer.seconds)
            self._count_step(name, answer.loss, answer.stream, steps=answer.steps)

    def interrupt_step(self, name: str) -> None:
        """Record that a member could not complete its step."""
        self.step_queue.abandon(name)
        self.step_queue.interrupt()

    def fail(self, name: str, failed: MemberFailed) -> None:
        """End the run where a member's failure asks for it, and the member hands over its weights.

        Raises WireError, so that it is dropped, where others go on without it.
        """
        with self._lock:
            if not failed.of_job and not self.step_queue.needs(name):
                raise WireError(failed.reason)
            self.stop("%s failed: %s" % (name, failed.reason))

    # -- weights and checkpoints -------------------------------------------------------------------

    def give_weights(self, weights: Arrays) -> None:
        """Store weights, what the optimizer keeps, and state, for members that join."""
        self.weights = weights
        self.step_queue.weights_given()

    def hands_over(self, name: str) -> bool:
        return self.spec.checkpoints.path is not None

    def wants_weights(self, name: str, digest: str, last: bool = False) -> bool:
        """Whether a member must send its weights; false if another one sends equal ones.

        digest: of the member's weights.
        last: at the end of the run; weights handed over earlier do not count then.
        """
        with self._lock:
            if last and not self._ending:
                self._handed_over.clear()
                self._ending = True
            return self._handed_over.wants_weights(name, digest, once=last or self.step_queue.waits)

    def add_state(self, name: str, arrays: Dict[str, Arrays], steps: int) -> None:
        """Store a member's arrays, with its weights if it was asked for them."""
        with self._lock:
            self._handed_over.add(name, arrays, steps, self.members[name].steps, self.stream_offset(name))

    def complete_save(self, name: str) -> None:
        """Record that a member handed over its arrays; after the last, write the checkpoint."""
        with self._lock:
            self.step_queue.saved(name)
            self._write_when_ready()

    def save_in_time(self) -> None:
        super().save_in_time()
        with self._lock:
            self._write_when_ready()

    def _write_when_ready(self) -> None:
        """Write the checkpoint for which all have handed over what they have.

        Where peers wait for nobody, one that is slow or hangs holds up none for long: with what
        it handed over for an earlier one, the checkpoint is written without waiting for it.
        """
        has_weights = self._handed_over.has_weights
        late = has_weights and not self.step_queue.waits and self._counter.saving_s > HAND_OVER_S
        if self.step_queue.hand_overs.take_save(late):
            if has_weights:
                self._checkpoint_writer.write_in_background(self._snapshot)
            if self.step_queue.waits:
                self._handed_over.clear()

    def _save_when_due(self) -> None:
        """The peers hand over what they have when each has ended its step."""
        self.step_queue.wake()

    @property
    def _is_saving(self) -> bool:
        return self.step_queue.hand_overs.awaited or super()._is_saving

    def _steps_since_save(self) -> int:
        return self._handed_over.steps_since(self.members)

    def _offsets_of_save(self) -> Dict[str, int]:
        saved = self._handed_over.offsets
        return {name: saved.get(name, offset) for name, offset in self._stream_offsets.items()}

    @property
    def _can_save(self) -> bool:
        return self._ending and self._handed_over.has_weights

    def _snapshot(self) -> checkpoint.Checkpoint:
        """The means over all members, and each member's own arrays."""
        means, state = self._handed_over.means()
        slots = dict(zip(SLOT_NAMES[self.spec.shared_kind], means[1:]))
        own = dict(self._batch_policy_state(), **self._handed_over.own())
        assert self.layout is not None, "members join before they hand over anything"
        return checkpoint.Checkpoint(means[0], slots, state, self._meta(), self.layout, own)
