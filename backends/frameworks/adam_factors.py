"""The numbers of an update of Adam or AdamW, alike for every place that makes one."""

import math
from typing import NamedTuple

from backends.frameworks.base import ADAMW, OptimizerSettings


class AdamFactors(NamedTuple):
    """The numbers of one update, in Kingma and Ba's order of computing that saves a pass.

    w <- shrink w - step m / (sqrt(v) + epsilon); step and epsilon correct the bias of m and v.
    decay: weight decay that is part of the gradient; shrink: that of AdamW.
    """

    step: float
    epsilon: float
    decay: float
    shrink: float


def factors(optimizer: OptimizerSettings, updates: int) -> AdamFactors:
    """The factors of an update; updates: how many were made, with this one."""
    unbiased = math.sqrt(1.0 - optimizer.beta2**updates)
    step = optimizer.rate * unbiased / (1.0 - optimizer.beta1**updates)
    decoupled = optimizer.kind == ADAMW
    return AdamFactors(
        step,
        optimizer.epsilon * unbiased,
        0.0 if decoupled else optimizer.weight_decay,
        1.0 - optimizer.rate * optimizer.weight_decay if decoupled else 1.0,
    )
