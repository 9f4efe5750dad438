"""LARS gives each variable a rate of its own for large batches (You et al., 2017, Alg. 1)."""

import math
from typing import Sequence

import numpy as np

from backends.frameworks.layout import Variable
from backends.frameworks.optimizer import LARS, MOMENTUM, OptimizerSettings, zero_slots
from backends.optimizers import sgd
from backends.optimizers.base import FlatOptimizer

#: The eta of the trust ratio (Crossover-SGD, Table 1).
COEFFICIENT = 0.0025


def apply(
    weights: np.ndarray,
    velocity: np.ndarray,
    gradients: np.ndarray,
    variables: Sequence[Variable],
    optimizer: OptimizerSettings,
) -> None:
    """u = rate trust (g + weight_decay w);  v <- momentum v + u;  w <- w - v, in place.

    All arrays (parameters,) float32. gradients: g of all workers, not scaled by any rate, for trust
    needs its norm; afterwards u.
    """
    scale(gradients, weights, variables, optimizer)
    sgd.apply(weights, velocity, gradients, optimizer.momentum)


class Lars(FlatOptimizer):
    """LARS with momentum; gradients are g, which includes neither the rate nor the weight decay."""

    def __init__(self, variables: Sequence[Variable]) -> None:
        self._variables = tuple(variables)
        self.slots = zero_slots(LARS, sum(variable.size for variable in variables))

    def apply(self, weights: np.ndarray, gradients: np.ndarray, optimizer: OptimizerSettings) -> None:
        apply(weights, self.slots[MOMENTUM], gradients, self._variables, optimizer)


def scale(
    gradients: np.ndarray,
    weights: np.ndarray,
    variables: Sequence[Variable],
    optimizer: OptimizerSettings,
) -> None:
    """g becomes u = rate trust (g + weight_decay w) in place: what ``sgd.apply`` takes.

    The trust of biases and scales of normalisation, variables of one dimension, is 1, as is usual.
    """
    for variable in variables:
        gradient, weight = gradients[variable.part], weights[variable.part]
        factor = optimizer.rate
        if len(variable.shape) > 1:
            factor *= trust(weight, gradient, optimizer.weight_decay)
        if optimizer.weight_decay:
            gradient += optimizer.weight_decay * weight
        gradient *= factor


def trust(weights: np.ndarray, gradients: np.ndarray, weight_decay: float) -> float:
    """COEFFICIENT |w| / (|g| + weight_decay |w|) of one variable; 1 where w or g is all zeros."""
    w, g = _norm(weights), _norm(gradients)
    return COEFFICIENT * w / (g + weight_decay * w) if w > 0.0 and g > 0.0 else 1.0


def _norm(values: np.ndarray) -> float:
    return math.sqrt(float(np.dot(values, values)))
