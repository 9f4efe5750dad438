"""The registry builds the optimizer of a name."""

from typing import Callable, Dict, Sequence

from backends.frameworks.layout import Variable
from backends.frameworks.optimizer import ADAM, ADAMW, DELAYED_NESTEROV, LARS, NESTEROV, SGD
from backends.optimizers.adam import Adam
from backends.optimizers.base import FlatOptimizer
from backends.optimizers.lars import Lars
from backends.optimizers.nesterov import DelayedNesterov, Nesterov
from backends.optimizers.sgd import Momentum

OPTIMIZERS: Dict[str, Callable[[Sequence[Variable]], FlatOptimizer]] = {
    SGD: Momentum,
    LARS: Lars,
    ADAM: Adam,
    ADAMW: Adam,
    NESTEROV: Nesterov,
    DELAYED_NESTEROV: DelayedNesterov,
}


def build(kind: str, variables: Sequence[Variable]) -> FlatOptimizer:
    """The optimizer of this name, for weights with these variables, before its first update."""
    return OPTIMIZERS[kind](variables)
