"""A TensorFlow replica mirrors its variables in flat host buffers."""

import threading
from typing import Any, Dict, List, Optional, Tuple

import numpy as np
import tensorflow as tf

from backends.frameworks.base import Replica
from backends.frameworks.optimizer import OWN, OptimizerSettings, Slots
from backends.jobs.carried_state import CarriedState
from backends.jobs.job import Job
from backends.jobs.kept_outputs import KeptOutputs
from backends.tensorflow.buffers import ConcatenatedCopies, PerVariableCopies, aligned, end, places
from backends.tensorflow.jobs import joined, shapes_of
from backends.tensorflow.mixed_precision import computing_in, require
from backends.tensorflow.own_optimizer import KerasOptimizer
from backends.tensorflow.updates import Update
from profilers.mixed_precision import FP32


class TensorFlowReplica(Replica):
    """The variables of a network, a graph for each batch size, and host buffers of fixed address.

    job: its model is a ``layers.Described`` or a ``user_model.UserNetwork``.
    accelerator: with ``cpu``, variables use the host buffer of the weights where possible.
    """

    def __init__(self, job: Job, accelerator: str) -> None:
        self.input_shape, self.classes, self.accelerator = job.input_shape or (), job.classes or 0, accelerator
        self._job = job
        self.higher_is_better = job.higher_is_better
        network = job.model
        self._trained = [variable for _, variable in network.trained]
        held, changing = network.frozen, network.kept[len(network.frozen) :]
        self._changing = [variable for _, variable in changing]
        self.variables, self.state_variables = places(network.trained), places(network.kept)
        self.frozen = end(places(held))
        self.weights, self.gradients = (aligned(end(self.variables)) for _ in range(2))
        self.state = aligned(end(self.state_variables))
        copies: Any = PerVariableCopies if accelerator == "cpu" else ConcatenatedCopies
        self._copies = copies(self._trained, self.variables)
        self._state_copies = ConcatenatedCopies(self._changing, places(changing))
        frozen = [variable for _, variable in held]
        self._frozen_copies = ConcatenatedCopies(frozen, places(held))
        self._update = Update(self._trained, self.variables, self._copies)
        self._copies.fetch(self._copies.pack(self._trained), self.weights)
        self._state_copies.fetch(self._state_copies.pack(self._changing), self.changing)
        self._frozen_copies.fetch(self._frozen_copies.pack(frozen), self.state[: self.frozen])
        self._computed = threading.Lock()  # a checkpoint is fetched during a gradient, from another thread
        self._packed: List[tf.Tensor] = []
        self._state: Optional[List[tf.Tensor]] = None
        self._updated = False
        self._steps = 0
        self._precision = FP32
        self._kept_outputs: Optional[KeptOutputs] = None
        self._carried, self._carried_in_test = (CarriedState(job.state, shapes_of) for _ in range(2))
        self._learn = tf.function(self._trace_gradient, autograph=False)
        self._combine = tf.function(_combined, autograph=False)
        self._judge = tf.function(self._trace_evaluation, autograph=False)
        if job.initial_weights is not None:
            self.set_weights(job.initial_weights)

    @property
    def network(self) -> Any:
        """The job's model."""
        return self._job.model

    def compute_in(self, precision: str) -> None:
        require(precision, self.accelerator)
        self._precision = precision

    def gradient(self, batch: Any, rate: float = 1.0, weight_decay: float = 0.0, adds: bool = False) -> float:
        before, self._packed = self._packed if adds else [], []  # else their memory can be used again
        scale = tf.constant(rate, tf.float32)
        decay = tf.constant(rate * weight_decay, tf.float32) if weight_decay else None
        step = tf.constant(self._steps, tf.int32)
        self._steps += 1
        self._carried.begin(adds)
        with computing_in(self._precision):
            loss, packed, state, carried = self._learn(batch, scale, decay, step, self._carried.before(batch))
        self._carried.after(carried)
        with self._computed:
            self._packed, self._state = packed, state
        if adds:
            self._packed = self._combine(before, self._packed, tf.ones(()), tf.ones(()))
        return float(loss)

    def gradient_norm(self) -> float:
        return float(tf.linalg.global_norm(self._packed))

    def rescale(self, factor: float, decay: float) -> None:
        weights = self._copies.pack(self._trained) if decay else self._packed
        self._packed = self._combine(self._packed, weights, tf.constant(factor), tf.constant(decay))

    def fetch(self) -> None:
        with self._computed:
            if self._state is not None:
                if self._packed:
                    self._copies.fetch(self._packed, self.gradients)
                self._state_copies.fetch(self._state, self.changing)
                self._state = None
        if self._updated:
            self._copies.fetch(self._copies.pack(self._trained), self.weights)
            self._updated = False

    def load(self) -> None:
        self._copies.load(self.weights)
        self._state_copies.load(self.changing)
        self._state, self._updated = None, False

    def load_frozen(self) -> None:
        self._frozen_copies.load(self.state[: self.frozen])

    def keep_state(self) -> None:
        """Tensors of a graph never change, so that nothing is copied."""
        with self._computed:
            self._kept_state = self.changing.copy() if self._state is None else self._state

    def kept_state(self) -> np.ndarray:
        if isinstance(self._kept_state, np.ndarray):
            return self._kept_state
        state = np.empty_like(self.changing)
        self._state_copies.fetch(self._kept_state, state)
        return state

    def update(self, optimizer: OptimizerSettings) -> None:
        if optimizer.kind == OWN:
            self._own_optimizer().step(self._copies.unpack(self._packed))
        else:
            self._update(self._packed, optimizer)
        self._updated = True

    def begin_evaluation(self) -> None:
        self._carried_in_test = CarriedState(self._job.state, shapes_of)
        self._kept_outputs = KeptOutputs(self._job.metrics, joined)

    def evaluate(self, batch: Any) -> Tuple[float, Dict[str, float]]:
        self._carried_in_test.begin()
        loss, metrics, found, carried = self._judge(batch, self._carried_in_test.before(batch))
        self._carried_in_test.after(carried)
        if self._kept_outputs is not None and self._kept_outputs.is_needed:
            self._kept_outputs.add(*found)
        return float(loss), {name: float(value) for name, value in metrics.items()}

    def end_evaluation(self, means: Dict[str, float]) -> Dict[str, float]:
        assert self._kept_outputs is not None, "it has begun"
        ended, self._kept_outputs = self._kept_outputs, None
        return ended.figures(means)

    def slots(self, kind: str) -> Slots:
        return self._update.slots(kind)

    def set_slots(self, slots: Slots) -> None:
        self._update.set_slots(slots)

    def own_step(self, weights: np.ndarray, gradients: np.ndarray) -> None:
        self.set_weights(weights)
        shaped = [tf.constant(gradients[at.part].reshape(at.shape)) for at in self.variables]
        self._own_optimizer().step([tf.cast(each, to.dtype) for each, to in zip(shaped, self._trained)])
        self._updated = True
        self.fetch()
        weights[:] = self.weights

    def _make_own_optimizer(self) -> KerasOptimizer:
        return KerasOptimizer(self._job.optimizer, self._job.model.module.trainable_variables)

    def _trace_gradient(
        self, batch: Any, rate: tf.Tensor, decay: Optional[tf.Tensor], step: tf.Tensor, state: Any
    ) -> Any:
        network = self._job.model
        with tf.GradientTape() as tape:
            found, carried = self._forward(batch, True, step, state)
            loss = self._job.loss(*found)
        gradients = network.gradients(tape, loss, rate)
        if decay is not None:
            gradients = [
                gradient + decay * tf.cast(variable, tf.float32) for gradient, variable in zip(gradients, self._trained)
            ]
        return loss, self._copies.pack(gradients), self._state_copies.pack(self._changing), carried

    def _forward(self, batch: Any, training: bool, step: tf.Tensor, state: Any) -> Tuple[Tuple[Any, Any], Any]:
        """Outputs and targets of a batch, and the state that it hands over, if any."""
        if self._job.state is None:
            return self._job.forward(self._job.model, batch, training, step), None
        outputs, targets, after = self._job.forward(self._job.model, batch, training, step, state)
        return (outputs, targets), after

    def _trace_evaluation(self, batch: Any, state: Any) -> Any:
        found, carried = self._forward(batch, False, tf.constant(0), state)
        metrics = {name: function(*found) for name, function in self._job.of_batches.items()}
        return self._job.loss(*found), metrics, found, carried


def _combined(first: List[tf.Tensor], second: List[tf.Tensor], factor: tf.Tensor, other: tf.Tensor) -> List[tf.Tensor]:
    """The packed tensors factor first + other second."""
    return [factor * one + other * tf.cast(two, tf.float32) for one, two in zip(first, second)]
