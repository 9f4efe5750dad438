"""Workers of synchronous training in one process share weights and keep statistics of their own.

The momentum is the server's. Batch normalisation keeps the running statistics of each worker, whose
mean is evaluated.
"""

from collections.abc import Sequence

import numpy as np
import torch
from racing.final_accuracy import thinned
from trainings import Setting

from backends.data.dataset import Dataset
from backends.data.loader import ArraySamples, BatchSource
from backends.frameworks.base import framework
from backends.frameworks.optimizer import GradientSettings
from backends.jobs.job import ACCURACY
from backends.optimizers import sgd
from backends.training.step import evaluate, step


class SynchronousWorkers:
    """One replica takes the place of each worker in turn."""

    def __init__(self, setting: Setting, whole: Dataset, seed: int, names: Sequence[str]) -> None:
        few = thinned(whole, setting.test_images)
        self._test = ArraySamples(few.test_images, few.test_labels)
        self._setting = setting
        torch.manual_seed(seed)  # by which the model draws its weights
        shape = whole.train_images.shape[1:]
        self._replica = framework("torch").build(setting.model, shape, whole.classes, seed, 1)
        self._weights = self._replica.weights.copy()
        self._velocity = np.zeros_like(self._weights)
        self._states = {name: self._replica.state.copy() for name in names}

    def gradient(self, name: str, batches: BatchSource) -> np.ndarray:
        """(parameters,) float32: a worker's gradient of its next batch, times the learning rate.

        It holds until the next call.
        """
        self._replica.state[:] = self._states[name]
        self._replica.set_weights(self._weights)
        step(self._replica, batches, GradientSettings(self._setting.rate))
        self._states[name][:] = self._replica.state
        return self._replica.gradients

    def apply(self, total: np.ndarray) -> None:
        """Update the weights with the sum of all gradients, each times its factor."""
        sgd.apply(self._weights, self._velocity, total, self._setting.momentum)

    def accuracy(self) -> float:
        """On the test images."""
        self._replica.state[:] = np.mean(list(self._states.values()), axis=0)
        self._replica.set_weights(self._weights)
        return float(evaluate(self._replica, self._test).metrics[ACCURACY])
