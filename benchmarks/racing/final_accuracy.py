"""Final weights are evaluated here, off a run's clock, on the whole test set."""

from pathlib import Path
from typing import Any

import numpy as np

from backends.data.dataset import Dataset
from backends.data.loader import ArraySamples
from backends.frameworks.base import framework
from backends.jobs.job import ACCURACY
from backends.training import checkpoint, step


def thinned(dataset: Dataset, images: int) -> Dataset:
    """With ``images`` of the test images, evenly spread over them, for evaluations on the way."""
    chosen = np.linspace(0, len(dataset.test_labels) - 1, images).round().astype(int)
    return dataset._replace(test_images=dataset.test_images[chosen], test_labels=dataset.test_labels[chosen])


def accuracies(path: Path, model: str, dataset: Dataset) -> dict[str, float]:
    """Accuracy by worker of a checkpoint, or of the common weights as "all"."""
    saved = checkpoint.read(str(path))
    states = saved.member_states.items()
    own = {name.removesuffix("/own"): arrays[0] for name, arrays in states if name.endswith("/own")}
    return {
        name: accuracy(model, dataset, weights, saved.state)
        for name, weights in (own or {"all": saved.weights}).items()
    }


def accuracy(model: str, dataset: Dataset, *arrays: np.ndarray) -> float:
    """Accuracy on the test images; arrays: weights and then state, float32, together or apart."""
    replica: Any = framework("torch").build(model, dataset.input_shape, dataset.classes, 0, 1)
    both = np.concatenate(arrays)
    replica.weights[:], replica.state[:] = np.split(both, [replica.weights.size])
    replica.load()
    test = ArraySamples(dataset.test_images, dataset.test_labels)
    return step.evaluate(replica, test).metrics[ACCURACY]
