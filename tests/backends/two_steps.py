"""A replica makes two steps, under a Python of any age.

Usage: python two_steps.py FRAMEWORK MODEL OUT
"""

import sys

import numpy as np

from backends.frameworks import base
from backends.frameworks.optimizer import MOMENTUM, SGD, OptimizerSettings

IMAGES = 8


def two_steps(framework, model):
    """The arrays of a replica after two steps, with ``names`` and ``shapes`` of its variables."""
    replica = base.framework(framework).build(model, seed=3)
    random = np.random.RandomState(0)  # the same in all versions of numpy
    images = random.randint(0, 256, (IMAGES,) + tuple(replica.input_shape)).astype(np.uint8)
    labels = random.randint(0, replica.classes, IMAGES).astype(np.int64)
    losses = []
    for _ in range(2):
        losses.append(replica.gradient((images, labels), rate=0.05, weight_decay=0.01))
        replica.update(OptimizerSettings(momentum=0.9))
    replica.fetch()
    variables = replica.variables + replica.state_variables
    return {
        "names": np.array([variable.name for variable in variables]),
        "shapes": np.array([str(variable.shape) for variable in variables]),
        "losses": np.array(losses),
        "weights": replica.weights,
        "gradients": replica.gradients,
        "momentum": replica.slots(SGD)[MOMENTUM],
        "state": replica.state,
    }


if __name__ == "__main__":
    np.savez(sys.argv[3], **two_steps(*sys.argv[1:3]))
