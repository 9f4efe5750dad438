"""The same weights, images and labels: the same loss, gradients and statistics in every framework.

Named arrays travel between workers and through checkpoints, so that workers of both frameworks
train one model.
"""

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("tensorflow")

from backends import models, pytorch, tensorflow
from backends.training.layout import layout_of
from tests.backends.replicas import batch_for, close, without_dropout

RATE, WEIGHT_DECAY = 0.3, 0.02


def calm(replica):
    """Make residual branches small.

    Otherwise each block of a deep network magnifies the rounding of those before it.
    """
    for place in replica.variables:
        if "branch." in place.name and place.name.endswith("batchnorm.weight"):
            replica.weights[place.start : place.start + place.size] = 0.1
    replica.load()


@pytest.mark.parametrize("name", models.MODELS)
def test_every_model_is_the_same_in_both(name):
    description = without_dropout(models.model(name, (32, 32, 3), 10))
    expected, found = (backend.build(description, seed=3) for backend in (pytorch, tensorflow))
    assert layout_of(found) == layout_of(expected)
    np.testing.assert_array_equal(found.weights, expected.weights)
    for each in (expected, found):
        calm(each)
    images, labels = batch_for(expected)
    loss, right = expected.evaluate(images, labels)
    assert found.evaluate(images, labels) == (pytest.approx(loss, rel=1e-4), right)
    losses = [each.gradient(images, labels, RATE, WEIGHT_DECAY) for each in (expected, found)]
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    for each in (expected, found):
        each.fetch()
    close(found.gradients, expected.gradients, 0.01)  # where a ReLU's input is zero but for rounding, they may differ
    close(found.state, expected.state)
    for each in (expected, found):
        each.update(0.9)
        each.fetch()
    close(found.weights, expected.weights)
