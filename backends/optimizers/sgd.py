"""SGD with momentum on flat arrays, block by block so that it stays in the cache."""

from typing import Sequence

import numpy as np

from backends.frameworks.layout import Variable
from backends.frameworks.optimizer import MOMENTUM, SGD, OptimizerSettings, zero_slots
from backends.optimizers.base import FlatOptimizer

#: Elements handled at once: a block of the velocity, which is used three times, stays in a
#: second-level cache of 1 MiB.
BLOCK = 1 << 17


def apply(weights: np.ndarray, velocity: np.ndarray, gradients: np.ndarray, momentum: float) -> None:
    """v <- m v + u;  w <- w - v, in place. All arrays float32 of one shape (parameters,).

    gradients: u, scaled by the learning rate. The velocity is not used where the momentum m is 0.
    """
    if not momentum:
        weights -= gradients
        return
    for start in range(0, weights.size, BLOCK):
        block = slice(start, start + BLOCK)
        v = velocity[block]
        v *= momentum
        v += gradients[block]
        weights[block] -= v


class Momentum(FlatOptimizer):
    """SGD with momentum; gradients are u, which includes the rate and the weight decay."""

    def __init__(self, variables: Sequence[Variable]) -> None:
        self.slots = zero_slots(SGD, sum(variable.size for variable in variables))

    def apply(self, weights: np.ndarray, gradients: np.ndarray, optimizer: OptimizerSettings) -> None:
        apply(weights, self.slots[MOMENTUM], gradients, optimizer.momentum)


def finite(flat: np.ndarray) -> bool:
    """Whether all of (elements,) float32, and their squares, are finite, in one reading."""
    return bool(np.isfinite(np.dot(flat, flat)))
