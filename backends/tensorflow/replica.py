"""A TensorFlow replica mirrors its variables in flat host buffers."""

from typing import Any, List, Optional, Tuple

import numpy as np
import tensorflow as tf

from backends.frameworks.base import Replica
from backends.models.layers import Shape
from backends.tensorflow.buffers import ConcatenatedCopies, PerVariableCopies, aligned, end, places
from backends.tensorflow.updates import Update


class TensorFlowReplica(Replica):
    """The variables of a network, a graph for each batch size, and host buffers of fixed address.

    network: a ``layers.Described`` or a ``user_model.UserNetwork``. classes: width of its output.
    input_shape: (height, width, channels) of an image.
    accelerator: with ``cpu``, variables use the host buffer of the weights where possible.
    """

    def __init__(self, network: Any, input_shape: Shape, classes: int, accelerator: str) -> None:
        self.input_shape, self.classes, self.accelerator = input_shape, classes, accelerator
        self._network = network
        self._trained = [variable for _, variable in network.trained]
        self._kept = [variable for _, variable in network.kept]
        self.variables, self.state_variables = places(network.trained), places(network.kept)
        self.weights, self.gradients = (aligned(end(self.variables)) for _ in range(2))
        self.state = aligned(end(self.state_variables))
        copies: Any = PerVariableCopies if accelerator == "cpu" else ConcatenatedCopies
        self._copies = copies(self._trained, self.variables)
        self._state_copies = ConcatenatedCopies(self._kept, self.state_variables)
        self._update = Update(self._trained, self.variables, self._copies)
        self._copies.fetch(self._copies.pack(self._trained), self.weights)
        self._state_copies.fetch(self._state_copies.pack(self._kept), self.state)
        self._packed: List[tf.Tensor] = []
        self._state: Optional[List[tf.Tensor]] = None
        self._updated = False
        self._steps = 0
        self._learn = tf.function(self._trace_gradient, autograph=False)
        self._judge = tf.function(self._trace_evaluation, autograph=False)

    def gradient(self, images: np.ndarray, labels: np.ndarray, rate: float = 1.0, weight_decay: float = 0.0) -> float:
        self._packed = []  # their memory can be used again
        scale = tf.constant(rate, tf.float32)
        decay = tf.constant(rate * weight_decay, tf.float32) if weight_decay else None
        step = tf.constant(self._steps, tf.int32)
        self._steps += 1
        loss, self._packed, self._state = self._learn(images, labels, scale, decay, step)
        return float(loss)

    def fetch(self) -> None:
        if self._state is not None:
            self._copies.fetch(self._packed, self.gradients)
            self._state_copies.fetch(self._state, self.state)
            self._state = None
        if self._updated:
            self._copies.fetch(self._copies.pack(self._trained), self.weights)
            self._updated = False

    def load(self) -> None:
        self._copies.load(self.weights)
        self._state_copies.load(self.state)
        self._state, self._updated = None, False

    def update(self, momentum: float) -> None:
        self._update(self._packed, momentum)
        self._updated = True

    def evaluate(self, images: np.ndarray, labels: np.ndarray) -> Tuple[float, int]:
        loss, right = self._judge(images, labels)
        return float(loss), int(right)

    def momentum(self) -> np.ndarray:
        return self._update.velocity()

    def set_momentum(self, values: np.ndarray) -> None:
        self._update.set_velocity(values)

    def _trace_gradient(
        self, images: tf.Tensor, labels: tf.Tensor, rate: tf.Tensor, decay: Optional[tf.Tensor], step: tf.Tensor
    ) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(_losses(self._network(_pixels(images), True, step), labels))
        gradients = self._network.gradients(tape, loss, rate)
        if decay is not None:
            gradients = [
                gradient + decay * tf.cast(variable, tf.float32) for gradient, variable in zip(gradients, self._trained)
            ]
        return loss, self._copies.pack(gradients), self._state_copies.pack(self._kept)

    def _trace_evaluation(self, images: tf.Tensor, labels: tf.Tensor) -> Any:
        logits = self._network(_pixels(images), False, tf.constant(0))
        right = tf.equal(tf.argmax(logits, 1), labels)
        return tf.reduce_sum(_losses(logits, labels)), tf.reduce_sum(tf.cast(right, tf.int32))


def _pixels(images: tf.Tensor) -> tf.Tensor:
    """uint8 (batch, height, width, channels) -> float32, -1 to 1."""
    return tf.cast(images, tf.float32) * (2 / 255.0) - 1.0


def _losses(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
