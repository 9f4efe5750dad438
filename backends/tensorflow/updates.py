"""The native update of one device: SGD with momentum, where the weights are."""

from typing import Any, List, Optional, Sequence

import numpy as np
import tensorflow as tf

from backends import optimise
from backends.base import Variable
from backends.tensorflow.carriers import Whole, end, host


class OnHost:
    """In the host buffer, as a parameter server does it: there the weights are on a CPU.

    In a variable that uses that memory TensorFlow would copy them first.
    """

    def __init__(self, where):
        # type: (Sequence[Variable]) -> None
        self._where = where
        self._velocity = None  # type: Optional[np.ndarray]

    def __call__(self, weights, packed, momentum):
        # type: (np.ndarray, Sequence[tf.Tensor], float) -> None
        """One step with the gradients that a graph has returned, packed by ``carriers.Each``."""
        velocity = self.velocity() if momentum else weights  # which is then not looked at
        for at, tensor in zip(self._where, packed):
            part = slice(at.start, at.start + at.size)
            optimise.apply(weights[part], velocity[part], host(tensor).reshape(-1), momentum)

    def velocity(self):
        # type: () -> np.ndarray
        """(parameters,) float32, made when first asked for: a worker whose server updates needs none."""
        if self._velocity is None:
            self._velocity = np.zeros(end(self._where), np.float32)
        return self._velocity

    def set_velocity(self, values):
        # type: (np.ndarray) -> None
        """From (parameters,) float32."""
        np.copyto(self.velocity(), values)


class OnDevice:
    """In the variables themselves, with gradients packed by ``carriers.Whole``."""

    def __init__(self, variables, where):
        # type: (Sequence[tf.Variable], Sequence[Variable]) -> None
        self._variables, self._where = variables, where
        self._gradients = Whole(variables, where)
        self._made = None  # type: Optional[List[tf.Variable]]
        self._descend = tf.function(self._trace_descent, autograph=False)
        self._gather = tf.function(self._trace_momentum, autograph=False)

    def __call__(self, weights, packed, momentum):
        # type: (np.ndarray, Sequence[tf.Tensor], float) -> None
        """See OnHost; weights: not touched."""
        if momentum:
            self._velocities()
            self._gather(packed, tf.constant(momentum, tf.float32))
        else:
            self._descend(packed)

    def velocity(self):
        # type: () -> np.ndarray
        """See OnHost."""
        carrier = self._carrier()
        flat = np.empty(end(self._where), np.float32)
        carrier.fetch(carrier.pack(self._velocities()), flat)
        return flat

    def set_velocity(self, values):
        # type: (np.ndarray) -> None
        """See OnHost."""
        self._carrier().load(np.ascontiguousarray(values, np.float32))

    def _carrier(self):
        # type: () -> Whole
        return Whole(self._velocities(), self._where)

    def _velocities(self):
        # type: () -> List[tf.Variable]
        if self._made is None:
            self._made = [tf.Variable(tf.zeros_like(variable), trainable=False) for variable in self._variables]
        return self._made

    def _trace_descent(self, packed):
        # type: (Sequence[tf.Tensor]) -> None
        for variable, gradient in zip(self._variables, self._gradients.unpack(packed)):
            variable.assign_sub(gradient)

    def _trace_momentum(self, packed, momentum):
        # type: (Sequence[tf.Tensor], tf.Tensor) -> None
        parts = zip(self._variables, self._velocities(), self._gradients.unpack(packed))
        for variable, velocity, gradient in parts:
            tf.raw_ops.ResourceApplyMomentum(
                var=variable.handle,
                accum=velocity.handle,
                lr=tf.ones((), variable.dtype),
                grad=gradient,
                momentum=tf.cast(momentum, variable.dtype),
            )
