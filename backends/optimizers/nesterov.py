"""Outer optimizers step by the mean change of a round of local updates, with Nesterov momentum.

Of a change d = w - w_i the sign is that of a gradient: a step subtracts it.
"""

from typing import Sequence

import numpy as np

from backends.frameworks.layout import Variable
from backends.frameworks.optimizer import (
    BUFFER,
    DELAYED_NESTEROV,
    MOMENTUM,
    NESTEROV,
    UPDATES,
    OptimizerSettings,
    zero_slots,
)
from backends.optimizers.base import FlatOptimizer
from backends.optimizers.sgd import BLOCK


class Nesterov(FlatOptimizer):
    """m <- b m + d;  w <- w - a (d + b m), with rate a and momentum b (DiLoCo, Alg. 1).

    Without momentum it is w <- w - a d, and m becomes 0.
    """

    def __init__(self, variables: Sequence[Variable]) -> None:
        self.slots = zero_slots(NESTEROV, sum(variable.size for variable in variables))

    def apply(self, weights: np.ndarray, gradients: np.ndarray, optimizer: OptimizerSettings) -> None:
        rate, momentum = np.float32(optimizer.rate), np.float32(optimizer.momentum)
        for start in range(0, weights.size, BLOCK):
            block = slice(start, start + BLOCK)
            step, m = gradients[block], self.slots[MOMENTUM][block]
            m *= momentum
            if momentum:
                m += step
                step = step + momentum * m
            weights[block] -= step if rate == 1.0 else rate * step


class DelayedNesterov(FlatOptimizer):
    """Nesterov for a server that waits for nobody (Liu et al., arXiv 2401.09135, Alg. 2).

    Each update with a change d is  c <- c + d;  w <- w - (a / N) d, and every N-th also
    m <- b m + c / N;  w <- w - a b m;  c <- 0.  N: ``OptimizerSettings.delay``.
    """

    def __init__(self, variables: Sequence[Variable]) -> None:
        self.slots = zero_slots(DELAYED_NESTEROV, sum(variable.size for variable in variables))

    def apply(self, weights: np.ndarray, gradients: np.ndarray, optimizer: OptimizerSettings) -> None:
        changes, momentum = self.slots[BUFFER], np.float32(optimizer.momentum)
        rate, delay = np.float32(optimizer.rate), np.float32(optimizer.delay)
        changes += gradients
        gradients *= rate / delay
        weights -= gradients
        self.slots[UPDATES] += 1
        if self.slots[UPDATES][0] >= delay:
            m = self.slots[MOMENTUM]
            m *= momentum
            m += changes / self.slots[UPDATES]
            weights -= rate * momentum * m
            changes.fill(0.0)
            self.slots[UPDATES].fill(0.0)
