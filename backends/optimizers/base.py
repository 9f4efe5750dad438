"""An optimizer updates flat weights in place: one of planner's own, or that of a user's job."""

import abc

import numpy as np

from backends.frameworks.base import Replica
from backends.frameworks.optimizer import OWN, OptimizerSettings, Slots, zero_slots


class FlatOptimizer(abc.ABC):
    """Updates flat float32 weights on the processor.

    slots: what it keeps from step to step. It changes them in place.
    """

    slots: Slots

    @abc.abstractmethod
    def apply(self, weights: np.ndarray, gradients: np.ndarray, optimizer: OptimizerSettings) -> None:
        """Make one step in place; (parameters,) float32 each. May change the gradients.

        gradients: as ``OptimizerSettings.in_gradients`` tells, the mean or sum over all workers.
        """


class JobOptimizer(FlatOptimizer):
    """The optimizer that a job brings, in the framework's own types; rates are its own as well."""

    def __init__(self, replica: Replica) -> None:
        self.slots = zero_slots(OWN, replica.weights.size)
        self._replica = replica

    def apply(self, weights: np.ndarray, gradients: np.ndarray, optimizer: OptimizerSettings) -> None:
        self._replica.own_step(weights, gradients)
