"""The same weights, images and labels: the same loss, gradients and statistics in every framework.

Named arrays travel between workers and through checkpoints, so that workers of both frameworks
train one model.
"""

import numpy as np
import pytest

from backends import models
from backends.frameworks.base import framework, layout_of
from backends.frameworks.optimizer import OptimizerSettings
from backends.models import zoo
from backends.models.layers import Dense
from tests.backends.replicas import SMALL, batch_for, close, without_dropout
from tests.installed import MIXED

RATE, WEIGHT_DECAY = 0.3, 0.02
INPUT, CLASSES = (32, 32, 3), 10
#: One block of each stage of resnet50 and resnet152.
BOTTLENECKS = zoo._imagenet("bottlenecks", (1, 1, 1, 1), INPUT, CLASSES)


def slim(name):
    """A model whose widest dense layers have few neurons."""
    description = models.model(name, INPUT, CLASSES)
    return description._replace(layers=tuple(Dense(64) if each == Dense(4096) else each for each in description.layers))


#: What is slow because it is deep or wide has a smaller relative here. That the large ones have the
#: variables of their descriptions is shown in ``test_replica``.
FAMILIES = [slim(name) for name in (*SMALL, "vgg19")] + [BOTTLENECKS]

pytestmark = pytest.mark.parametrize("frameworks", [MIXED])


def build_both(frameworks, description):
    """A replica of each framework, with the same names, shapes and initial weights."""
    replicas = [framework(name).build(description, seed=3) for name in frameworks]
    assert layout_of(replicas[1]) == layout_of(replicas[0])
    np.testing.assert_array_equal(replicas[1].weights, replicas[0].weights)
    return replicas


def calm(replica):
    """Make residual branches small.

    Otherwise each block of a deep network magnifies the rounding of those before it.
    """
    for place in replica.variables:
        if "branch." in place.name and place.name.endswith("batchnorm.weight"):
            replica.weights[place.start : place.start + place.size] = 0.1
    replica.load()


@pytest.mark.parametrize("description", FAMILIES, ids=lambda description: description.name)
def test_a_step_of_every_family_is_the_same_in_both(frameworks, description):
    expected, found = build_both(frameworks, without_dropout(description))
    for each in (expected, found):
        calm(each)
    images, labels = batch_for(expected)
    loss, metrics = expected.evaluate((images, labels))
    assert found.evaluate((images, labels)) == (pytest.approx(loss, rel=1e-4), pytest.approx(metrics))
    losses = [each.gradient((images, labels), RATE, WEIGHT_DECAY) for each in (expected, found)]
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    for each in (expected, found):
        each.fetch()
    close(found.gradients, expected.gradients, 0.01)  # where a ReLU's input is zero but for rounding, they may differ
    close(found.state, expected.state)
    for each in (expected, found):
        each.update(OptimizerSettings(momentum=0.9))
        each.fetch()
    close(found.weights, expected.weights)
