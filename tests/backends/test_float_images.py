"""Images of floats are taken as they are: bytes that are scaled beforehand train the same model."""

import numpy as np
import pytest

from backends.frameworks.optimizer import OptimizerSettings
from tests.backends.replicas import batch_for, by_every_framework, close, small_replica


@by_every_framework
def test_scaled_floats_train_as_the_bytes_do(framework):
    of_bytes, of_floats = small_replica(framework), small_replica(framework)
    for seed in range(5):
        images, labels = batch_for(of_bytes, seed=seed)
        floats = np.float32(images / 127.5 - 1)
        losses = [of_bytes.gradient((images, labels), 0.1), of_floats.gradient((floats, labels), 0.1)]
        assert losses[1] == pytest.approx(losses[0], rel=1e-5)
        for each in (of_bytes, of_floats):
            each.update(OptimizerSettings(momentum=0.9))
            each.fetch()
    close(of_floats.weights, of_bytes.weights, 1e-5)
    assert of_floats.evaluate((floats, labels))[0] == pytest.approx(of_bytes.evaluate((images, labels))[0], rel=1e-5)


@by_every_framework
def test_a_step_leaves_the_images_as_they_were(framework):
    replica = small_replica(framework)
    images, labels = batch_for(replica)
    floats = np.float32(images)
    before = floats.copy()
    replica.evaluate((floats, labels))
    replica.gradient((floats, labels))
    np.testing.assert_array_equal(floats, before)
