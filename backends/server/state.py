"""The server state holds the weights of a run, hands out its steps and applies gradients."""

import math
import time
from typing import Any, Callable, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from backends.frameworks.base import Arrays
from backends.frameworks.optimizer import DELAYED_NESTEROV, SGD, GradientSettings, OptimizerSettings
from backends.hosting.run_host import HostedRunState
from backends.hosting.step_queue import StepQueue, WorkItem
from backends.optimizers import registry
from backends.optimizers.sgd import finite
from backends.protocol.events import Emit
from backends.protocol.frames import EVALUATE, ArraySpec, WorkerEvaluation, WorkerStep
from backends.server.aggregation import Aggregator, WorkerGradient
from backends.server.global_model import GlobalModel
from backends.server.gradient_estimates import GradientEstimates
from backends.server.sample_forwarding import ForwardedSamples, SampleForwarding
from backends.server.worker_state import WorkerStates
from backends.strategies.aggregation_rules import FACTORS
from backends.training import checkpoint
from backends.training.local_steps import LocalSteps, RoundPlan
from backends.training.run_spec import RunSpec


class WorkerOrder(NamedTuple):
    """What a worker is told to do, with the weights that changed since its last pull.

    version: number of updates that they include.
    samples: that other workers have given to it, which it receives before.
    """

    head: Union[WorkerStep, WorkerEvaluation]
    arrays: Arrays
    version: int
    samples: Sequence[ForwardedSamples] = ()


class ServerState(HostedRunState):
    """The coordinator of a parameter server.

    ``begin`` sets the weights of a run without a checkpoint.
    Raises ValueError or OSError where the checkpoint to resume from cannot be used.
    """

    step_queue: StepQueue

    def __init__(self, spec: RunSpec, emit: Emit) -> None:
        super().__init__(spec, emit)
        self._model: Optional[GlobalModel] = None
        self._aggregator = Aggregator(spec.run.strategy.sync)
        self._worker_states = WorkerStates({})
        self._local_steps = LocalSteps(spec.run.strategy.local, spec.run.strategy.outer, spec.step_s)
        self._estimates = GradientEstimates() if spec.run.strategy.compressor.sends_differences else None
        self._forwarding = SampleForwarding()
        self._first_round = 0  # of a resumed run, so that it does not draw its first rounds again
        if spec.checkpoints.resume is not None:
            self._resume_from(spec.checkpoints.resume)
        self.step_queue = StepQueue(self._counter)

    def _resume_from(self, path: str) -> None:
        saved = checkpoint.read(path)
        self._first_round = int(saved.meta["step"]) // self.spec.members
        self._worker_states = WorkerStates(self._resume(saved))
        flat_optimizer = registry.build(self.spec.shared_kind, saved.layout.variables)
        flat_optimizer.slots = saved.slots
        self.begin(GlobalModel(saved.layout, saved.weights, flat_optimizer, saved.state))

    def _set_present(self, names: Iterable[str]) -> None:
        super()._set_present(names)
        followers: List[Any] = [self._aggregator, self._worker_states, self.step_queue, self._forwarding]
        for each in (*followers, self._estimates, self._model):
            if each is not None:
                each.set_members(self._present)

    @property
    def begun(self) -> bool:
        """Whether there are weights."""
        return self._model is not None

    def begin(self, model: GlobalModel) -> None:
        """Begin with this model."""
        self._model = model

    @property
    def model(self) -> GlobalModel:
        """The global model; asserts that the run has begun."""
        assert self._model is not None, "workers are served after the first has given the initial weights"
        return self._model

    def join(self, worker: str, description: Tuple[ArraySpec, ...]) -> Arrays:
        """Add a worker with a state of this description; return the state that it resumes from."""
        with self._lock:
            self._set_present({*self._present, worker})
            own = self._worker_states.introduce(worker, description)
            if self._estimates is not None:
                self._estimates.begin(worker, self.model.layout.parameters, own)
            return own

    def leave(self, name: str, lost: bool) -> None:
        """Remove a worker, so that neither a round nor a checkpoint waits for it."""
        with self._lock:
            if lost and self._model is not None:
                self._model.forget_state(name)
            self._set_present(set(self._present) - {name})
            self._advance()

    def take(self, name: str, gone: Callable[[], bool]) -> WorkItem:
        return self.step_queue.take(name, gone, lambda: self._may_begin(name), lambda: self._steps_of(name))

    def _steps_of(self, name: str) -> int:
        """Steps that a worker makes before it sends anything."""
        return self._round_plan().steps[name] if self.spec.run.strategy.local else 1

    def _round_plan(self) -> RoundPlan:
        """The round of all workers, if each began one now."""
        done = self.step_queue.done
        return self._local_steps.plan(self._present, done, self.spec.run.steps - done)

    def _may_begin(self, worker: str) -> bool:
        return self._aggregator.may_begin(worker) and self._worker_states.may_begin(worker)

    def order(self, worker: str, item: WorkItem) -> WorkerOrder:
        """The order for a worker's item."""
        with self._lock:
            weights, version = self.model.pull(worker), self.step_queue.done
            if item.kind == EVALUATE:
                frozen = self.model.layout.state - self.members[worker].state.size
                arrays = weights.arrays + (self.model.state()[frozen:],)
                return WorkerOrder(WorkerEvaluation(item.step, weights.head), arrays, version)
            optimizer = self.spec.optimizer_at(item.step)
            step = WorkerStep(
                item.step,
                self.batch(worker),
                self._in_gradients(optimizer),
                self._worker_states.is_requested(worker),
                weights.head,
                optimizer.rate,
                self._round_plan().order(item.steps) if self.spec.run.strategy.local else None,
                self.saved_offset(worker),
                self.share(worker, self._first_round + self._aggregator.steps(worker)),
            )
            return WorkerOrder(step, weights.arrays, version, self._forwarding.take(worker))

    def forward(self, receivers: Sequence[str], samples: ForwardedSamples) -> None:
        """Keep samples that a worker has given for their receivers' next steps."""
        with self._lock:
            self._forwarding.add(receivers, samples, self.batch)

    @property
    def _takes_rate_later(self) -> bool:
        """Whether gradients come without the learning rate: sums of them would keep former ones."""
        return self._estimates is not None and not self.spec.run.strategy.local

    def _in_gradients(self, optimizer: OptimizerSettings) -> GradientSettings:
        """What the workers' gradients include."""
        included = optimizer.in_gradients
        return included._replace(rate=1.0) if self._takes_rate_later else included

    def add_gradient(self, item: WorkItem, gradient: WorkerGradient, hand_over: bool) -> None:
        """Add a worker's gradient, and its state where it was requested.

        The weights change when a round is complete. A gradient that is not finite ends the run.
        """
        worker, stats = gradient.worker, self.members[gradient.worker]
        with self._lock:
            sound = math.isfinite(gradient.loss) and finite(stats.state) and self.model.accepts(gradient.message)
            if sound:
                self.model.report_state(worker, stats.state)
                if hand_over:
                    self._worker_states.add(worker, tuple(array.copy() for array in stats.own))
                self._batch_policy.record(worker, gradient.batch, gradient.seconds)
                self._local_steps.record(worker, item.steps, gradient.seconds)
                if self._estimates is not None:
                    began = time.perf_counter()
                    gradient = gradient._replace(message=self._estimates.completed(worker, gradient.message))
                    self.model.count_service(time.perf_counter() - began)
                self._aggregator.add_gradient(gradient)
                self._advance()
        if not sound:
            self._end_diverged(worker, item.kind, item.step, gradient.loss)

    def _advance(self) -> None:
        """Apply a complete round, and take a checkpoint that is due.

        The steps of a round are counted before a checkpoint can be taken.
        """
        before = self.step_queue.done
        gradients = self._aggregator.take_round(self.step_queue.items_left, self._worker_states.complete())
        if gradients:
            self._apply(gradients, before)
        self._save_when_due()
        if self._worker_states.complete():
            self._checkpoint_writer.write_in_background(self._snapshot)
            self._worker_states.release()
        self.step_queue.wake()

    def _save_when_due(self) -> None:
        """Take the checkpoint, or request what workers have to hand over for it."""
        if self._counter.take_due_save() and not self._worker_states.request():
            self._checkpoint_writer.write_in_background(self._snapshot)

    def _apply(self, gradients: Sequence[WorkerGradient], before: int) -> None:
        mean_batch, n = self._aggregator.mean_batch, len(gradients)
        factor, optimizer = FACTORS[self.spec.run.strategy.aggregation], self.spec.optimizer_at(before)
        rate = optimizer.rate if self._takes_rate_later and optimizer.kind == SGD else 1.0
        self.model.update(
            [gradient.message for gradient in gradients],
            [rate * factor(gradient.batch, mean_batch, self.spec.run.batch, n) for gradient in gradients],
            self._outer_step(n) if self.spec.run.strategy.local else optimizer,
        )
        for gradient in gradients:
            staleness = before - gradient.version
            self._count_step(gradient.worker, gradient.loss, gradient.stream, staleness, gradient.steps)

    def _outer_step(self, changes: int) -> OptimizerSettings:
        """The outer optimizer for so many changes.

        Where not all members wait, one change is no more than its part of the members' mean.
        """
        plan = self._round_plan()
        if plan.outer.kind == DELAYED_NESTEROV:  # which takes parts itself
            return plan.outer
        return plan.outer._replace(rate=plan.outer.rate * changes / max(changes, len(plan.steps)))

    def mean_model_state(self) -> np.ndarray:
        """The mean of the states that workers reported; a new (state,) float32."""
        with self._lock:
            return self.model.state()

    def hands_over(self, name: str) -> bool:
        return self.spec.checkpoints.path is not None and self._worker_states.is_stateful(name)

    def add_last_state(self, worker: str, arrays: Arrays) -> None:
        """Store the state of a worker at the end of the run."""
        with self._lock:
            self._worker_states.latest[worker] = arrays

    @property
    def _is_saving(self) -> bool:
        return self._worker_states.under_way or super()._is_saving

    def _snapshot(self) -> checkpoint.Checkpoint:
        states = dict(self._worker_states.latest, **self._batch_policy_state())
        return self.model.snapshot(self._meta(), states)

    @property
    def _can_save(self) -> bool:
        return self.begun

    @property
    def service_s(self) -> Optional[float]:
        return self._model.service_s if self._model is not None else None
