"""The native update of one device applies SGD with momentum to the variables in place."""

from typing import Any, List, Optional, Sequence

import numpy as np
import tensorflow as tf

from backends.frameworks.base import Variable
from backends.tensorflow.buffers import end


class Update:
    """SGD with momentum on gradients that a buffer has packed, compiled.

    On a CPU, the first update moves variables out of the host buffer of the weights: TensorFlow
    copies memory that it shares with numpy before each update.
    """

    def __init__(self, variables: Sequence[tf.Variable], where: Sequence[Variable], gradients: Any) -> None:
        self._variables, self._where, self._gradients = variables, where, gradients
        self._made: Optional[List[tf.Variable]] = None
        self._descend = tf.function(self._trace_descent, autograph=False)
        self._gather = tf.function(self._trace_momentum, autograph=False)

    def __call__(self, packed: Sequence[tf.Tensor], momentum: float) -> None:
        """One step with the gradients that a graph has returned."""
        if momentum:
            self._velocities()
            self._gather(packed, tf.constant(momentum, tf.float32))
        else:
            self._descend(packed)

    def velocity(self) -> np.ndarray:
        """The velocity, (parameters,) float32, as a copy."""
        copies = self._copies()
        flat = np.empty(end(self._where), np.float32)
        copies.fetch(copies.pack(self._velocities()), flat)
        return flat

    def set_velocity(self, values: np.ndarray) -> None:
        self._copies().load(np.array(values, np.float32))

    def _copies(self) -> Any:
        return type(self._gradients)(self._velocities(), self._where)

    def _velocities(self) -> List[tf.Variable]:
        if self._made is None:  # on first use: a worker whose server updates needs none
            self._made = [tf.Variable(tf.zeros_like(variable), trainable=False) for variable in self._variables]
        return self._made

    def _trace_descent(self, packed: Sequence[tf.Tensor]) -> None:
        for variable, gradient in zip(self._variables, self._gradients.unpack(packed)):
            variable.assign_sub(gradient)

    def _trace_momentum(self, packed: Sequence[tf.Tensor], momentum: tf.Tensor) -> None:
        parts = zip(self._variables, self._velocities(), self._gradients.unpack(packed))
        for variable, velocity, gradient in parts:
            tf.raw_ops.ResourceApplyMomentum(
                var=variable.handle,
                accum=velocity.handle,
                lr=tf.ones((), variable.dtype),
                grad=gradient,
                momentum=tf.cast(momentum, variable.dtype),
            )
