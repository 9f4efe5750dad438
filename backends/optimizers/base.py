"""An optimizer updates flat weights in place; each kind is a class of its own."""

import abc

import numpy as np

from backends.frameworks.optimizer import OptimizerSettings, Slots


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
