"""The server's update is the textbook's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from backends.optimizers.sgd import BLOCK, apply, finite

SIZES = (0, 1, 7, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5)


def textbook(weights, velocity, gradients, momentum):
    velocity = momentum * velocity + gradients
    return weights - velocity, velocity


@settings(max_examples=60, deadline=None)
@given(size=some.sampled_from(SIZES), momentum=some.sampled_from([0.0, 0.5, 0.9]), seed=some.integers(0, 1000))
def test_it_equals_the_formula(size, momentum, seed):
    weights, velocity, gradients = np.random.default_rng(seed).normal(size=(3, size)).astype(np.float32)
    kept = gradients.copy()
    wanted, wanted_velocity = textbook(*(a.astype(np.float64) for a in (weights, velocity, gradients)), momentum)
    apply(weights, velocity, gradients, momentum)
    np.testing.assert_allclose(weights, wanted, rtol=1e-5, atol=1e-5)
    if momentum:
        np.testing.assert_allclose(velocity, wanted_velocity, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(gradients, kept)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, BLOCK, 2 * BLOCK])
def test_a_value_that_is_not_finite_is_found_wherever_it_is(value, place):
    values = np.zeros(2 * BLOCK + 1, np.float32)
    assert finite(values)
    values[place] = value
    assert not finite(values)
