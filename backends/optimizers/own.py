"""The optimizer of a user's job updates the weights of a peer."""

import numpy as np

from backends.frameworks.base import Replica
from backends.frameworks.optimizer import OWN, OptimizerSettings, zero_slots
from backends.optimizers.base import FlatOptimizer


class JobOptimizer(FlatOptimizer):
    """The optimizer that a job brings, in the framework's own types; rates are its own as well."""

    def __init__(self, replica: Replica) -> None:
        self.slots = zero_slots(OWN, replica.weights.size)
        self._replica = replica

    def apply(self, weights: np.ndarray, gradients: np.ndarray, optimizer: OptimizerSettings) -> None:
        self._replica.own_step(weights, gradients)
