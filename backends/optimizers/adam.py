"""Adam scales each step by running moments of the gradient (Kingma and Ba, 2015, Alg. 1).

AdamW keeps the weight decay out of the moments (Loshchilov and Hutter, 2019, Alg. 2).
"""

from typing import Sequence

import numpy as np

from backends.frameworks.layout import Variable
from backends.frameworks.optimizer import (
    ADAM,
    FIRST_MOMENT,
    SECOND_MOMENT,
    UPDATES,
    AdamFactors,
    OptimizerSettings,
    factors,
    zero_slots,
)
from backends.optimizers.base import FlatOptimizer

#: Elements handled at once: blocks of four arrays stay in a second-level cache of 1 MiB.
BLOCK = 1 << 16


class Adam(FlatOptimizer):
    """Adam, or AdamW, as the settings of an update tell.

    updates: of the slots, (1,) float32, which counts exactly to 2^24; the bias is long gone then.
    """

    def __init__(self, variables: Sequence[Variable]) -> None:
        self.slots = zero_slots(ADAM, sum(variable.size for variable in variables))
        self._scratch = np.empty(BLOCK, np.float32)

    def apply(self, weights: np.ndarray, gradients: np.ndarray, optimizer: OptimizerSettings) -> None:
        self.slots[UPDATES] += 1
        made = factors(optimizer, int(self.slots[UPDATES][0]))
        first, second = self.slots[FIRST_MOMENT], self.slots[SECOND_MOMENT]
        for start in range(0, weights.size, BLOCK):
            block = slice(start, start + BLOCK)
            self._apply_block(weights[block], gradients[block], first[block], second[block], optimizer, made)

    def _apply_block(
        self,
        w: np.ndarray,
        g: np.ndarray,
        m: np.ndarray,
        v: np.ndarray,
        optimizer: OptimizerSettings,
        made: AdamFactors,
    ) -> None:
        t = self._scratch[: w.size]
        if made.decay:
            np.multiply(w, made.decay, out=t)
            g += t
        if made.shrink != 1.0:
            w *= made.shrink
        np.multiply(g, 1.0 - optimizer.beta1, out=t)
        m *= optimizer.beta1
        m += t
        np.multiply(g, g, out=t)
        t *= 1.0 - optimizer.beta2
        v *= optimizer.beta2
        v += t
        np.sqrt(v, out=t)
        t += made.epsilon
        np.divide(m, t, out=t)
        t *= made.step
        w -= t
