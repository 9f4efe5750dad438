"""Replicas of one small model, in the frameworks that are installed here and without any."""

from backends.frameworks import base
from backends.frameworks.base import Replica
from backends.models.layers import BatchNorm, Conv, Dense, Flatten, Model, Relu
from tests.backends.fakes import CLASSES, Softmax

SHAPE = (2, 2, 3)

#: Order matters where it is flattened, and where a kernel lies in memory. Without batch normalisation many batches
#: together have the mean of their gradients.
PLAIN = Model("plain", SHAPE, CLASSES, (Conv(4, 3, padding=1), Relu(), Flatten(), Dense(CLASSES)), "a test")
NORMALISED = PLAIN._replace(layers=(Conv(4, 3, padding=1, bias=False), BatchNorm(), *PLAIN.layers[1:]))


def replica(framework: str, model: Model = PLAIN) -> Replica:
    """One for ``fakes.images``; of softmax regression for "numpy"."""
    if framework == "numpy":
        return Softmax()
    made: Replica = base.framework(framework).build(model, seed=1)
    return made
