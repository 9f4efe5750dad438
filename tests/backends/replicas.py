"""Replicas of models in every framework that is installed, and what their tests have in common."""

from typing import Any

import numpy as np
import pytest

from backends.data import dataset
from backends.frameworks import base
from backends.frameworks.base import FRAMEWORKS, Replica
from backends.frameworks.optimizer import OptimizerSettings
from backends.models.layers import BatchNorm, Concat, Conv, Dense, Dropout, Flatten, Model, Relu, Residual
from tests.backends.fakes import CLASSES, Softmax
from tests.installed import computes_with

SMALL = ["alexnet", "cifar10", "cipher", "mobilenet", "nin", "resnet", "squeezenet"]

#: Order matters where it is flattened, and where a kernel lies in memory. Without batch
#: normalisation many batches together have the mean of their gradients.
PLAIN = Model("plain", (2, 2, 3), CLASSES, (Conv(4, 3, padding=1), Relu(), Flatten(), Dense(CLASSES)), "a test")
NORMALISED = PLAIN._replace(layers=(Conv(4, 3, padding=1, bias=False), BatchNorm(), *PLAIN.layers[1:]))
#: Of several buckets of torch's DistributedDataParallel, the first of which has 1 MB.
WIDE = PLAIN._replace(layers=(Flatten(), Dense(700), Relu(), Dense(700), Relu(), Dense(700), Relu(), Dense(CLASSES)))

#: Every framework by its name, skipped where it is not installed.
by_every_framework = pytest.mark.parametrize(
    "framework", [pytest.param(name, marks=computes_with(name)) for name in sorted(FRAMEWORKS)]
)


def small_replica(framework: str, model: Model = PLAIN) -> Replica:
    """A replica for ``fakes.images``; of softmax regression for "numpy"."""
    if framework == "numpy":
        return Softmax()
    made: Replica = base.framework(framework).build(model, seed=1)
    return made


def batch_for(replica: Any, count: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    noise = dataset.synthetic(replica.input_shape, replica.classes, count, seed)
    return noise.train_images, noise.train_labels


def learns(replica: Replica) -> bool:
    """Whether twenty steps on one batch lower its loss."""
    batch = batch_for(replica, 32)
    first = replica.gradient(batch, rate=0.1)
    for _ in range(20):
        replica.update(OptimizerSettings(momentum=0.9))
        last = replica.gradient(batch, rate=0.1)
    return last < first


def close(got: np.ndarray, expected: np.ndarray, within: float = 1e-3) -> None:
    """Equal but for rounding, which batch normalisation over few images magnifies."""
    assert got.shape == expected.shape
    assert np.linalg.norm(got - expected) <= within * np.linalg.norm(expected)


def without_dropout(model: Model) -> Model:
    return model._replace(layers=_without_dropout(model.layers))


def _without_dropout(layers: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(_inside(layer) for layer in layers if not isinstance(layer, Dropout))


def _inside(layer: Any) -> Any:
    if isinstance(layer, Residual):
        return Residual(_without_dropout(layer.branch), _without_dropout(layer.shortcut))
    if isinstance(layer, Concat):
        return Concat(tuple(map(_without_dropout, layer.branches)))
    return layer
