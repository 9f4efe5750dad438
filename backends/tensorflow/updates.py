"""The native update of one device applies SGD with momentum, or Adam, to the variables in place."""

from typing import Any, Dict, List, Sequence

import numpy as np
import tensorflow as tf

from backends.frameworks.layout import Variable
from backends.frameworks.optimizer import (
    FIRST_MOMENT,
    MOMENTUM,
    SECOND_MOMENT,
    SGD,
    NativeUpdate,
    OptimizerSettings,
    factors,
)
from backends.tensorflow.buffers import end


class Update(NativeUpdate):
    """SGD with momentum, or Adam, on gradients that a buffer has packed, compiled.

    On a CPU, the first update moves variables out of the host buffer of the weights: TensorFlow
    copies memory that it shares with numpy before each update.
    """

    def __init__(self, variables: Sequence[tf.Variable], where: Sequence[Variable], gradients: Any) -> None:
        self._variables, self._where, self._gradients = variables, where, gradients
        self._made: Dict[str, List[tf.Variable]] = {}
        self._descend = tf.function(self._trace_descent, autograph=False)
        self._gather = tf.function(self._trace_momentum, autograph=False)
        self._adapt = tf.function(self._trace_adam, autograph=False)

    def __call__(self, packed: Sequence[tf.Tensor], optimizer: OptimizerSettings) -> None:
        """One step with the gradients that a graph has returned."""
        if optimizer.kind != SGD:
            self.updates += 1
            for name in (FIRST_MOMENT, SECOND_MOMENT):
                self._slot(name)  # a graph cannot make variables
            numbers = (optimizer.beta1, optimizer.beta2, *factors(optimizer, self.updates))
            self._adapt(packed, tf.constant(numbers, tf.float32))
        elif optimizer.momentum:
            self._slot(MOMENTUM)
            self._gather(packed, tf.constant(optimizer.momentum, tf.float32))
        else:
            self._descend(packed)

    def _read(self, name: str) -> np.ndarray:
        copied, copies = np.empty(end(self._where), np.float32), self._copies(name)
        copies.fetch(copies.pack(self._slot(name)), copied)
        return copied

    def _write(self, name: str, values: np.ndarray) -> None:
        self._copies(name).load(values)

    def _copies(self, name: str) -> Any:
        return type(self._gradients)(self._slot(name), self._where)

    def _slot(self, name: str) -> List[tf.Variable]:
        if name not in self._made:
            self._made[name] = [tf.Variable(tf.zeros_like(variable), trainable=False) for variable in self._variables]
        return self._made[name]

    def _trace_descent(self, packed: Sequence[tf.Tensor]) -> None:
        for variable, gradient in zip(self._variables, self._gradients.unpack(packed)):
            variable.assign_sub(gradient)

    def _trace_momentum(self, packed: Sequence[tf.Tensor], momentum: tf.Tensor) -> None:
        parts = zip(self._variables, self._slot(MOMENTUM), self._gradients.unpack(packed))
        for variable, velocity, gradient in parts:
            tf.raw_ops.ResourceApplyMomentum(
                var=variable.handle,
                accum=velocity.handle,
                lr=tf.ones((), variable.dtype),
                grad=gradient,
                momentum=tf.cast(momentum, variable.dtype),
            )

    def _trace_adam(self, packed: Sequence[tf.Tensor], numbers: tf.Tensor) -> None:
        """numbers: beta1, beta2 and ``AdamFactors``, which correct the bias: the powers are 0."""
        moments = zip(self._slot(FIRST_MOMENT), self._slot(SECOND_MOMENT))
        for variable, (first, second), gradient in zip(self._variables, moments, self._gradients.unpack(packed)):
            beta1, beta2, step, epsilon, decay, shrink = tf.unstack(tf.cast(numbers, variable.dtype))
            gradient += decay * variable
            variable.assign(shrink * variable)
            tf.raw_ops.ResourceApplyAdam(
                var=variable.handle,
                m=first.handle,
                v=second.handle,
                beta1_power=tf.zeros((), variable.dtype),
                beta2_power=tf.zeros((), variable.dtype),
                lr=step,
                beta1=beta1,
                beta2=beta2,
                epsilon=epsilon,
                grad=gradient,
            )
