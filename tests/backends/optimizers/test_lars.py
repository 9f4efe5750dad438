"""LARS gives each variable a rate in proportion to its weights, as its algorithm says."""

import numpy as np
import pytest

from backends.frameworks.layout import Variable
from backends.frameworks.optimizer import OptimizerSettings
from backends.optimizers.lars import apply, scale, trust

MATRIX, BIAS = Variable("w", (1, 2), 0, 2), Variable("b", (2,), 2, 2)


def flat(*values):
    return np.array(values, np.float32)


def test_a_step_worked_out_by_hand():
    # |w| = 5, |g| = 1: trust = 0.0025 * 5 / (1 + 0.2 * 5) = 0.00625, and 8 * 0.00625 = 0.05.
    weights, velocity, gradients = flat(3, 4, 1, 1), flat(0.1, 0, 0, -1), flat(0.6, 0.8, 1, 2)
    apply(weights, velocity, gradients, (MATRIX, BIAS), OptimizerSettings(rate=8.0, momentum=0.5, weight_decay=0.2))
    np.testing.assert_allclose(gradients, [0.06, 0.08, 9.6, 17.6], rtol=1e-5)
    np.testing.assert_allclose(velocity, [0.11, 0.08, 9.6, 17.1], rtol=1e-5)
    np.testing.assert_allclose(weights, [2.89, 3.92, -8.6, -16.1], rtol=1e-5)


def test_variables_of_one_dimension_are_not_scaled():
    gradients = flat(0, 0, 6, 8)
    scale(gradients, flat(0, 0, 3, 4), (BIAS,), OptimizerSettings(rate=2.0))
    np.testing.assert_array_equal(gradients, [0, 0, 12, 16])


@pytest.mark.parametrize(("weights", "gradients"), [((0, 0), (3, 4)), ((3, 4), (0, 0))])
def test_where_a_norm_is_zero_it_is_plain_descent(weights, gradients):
    assert trust(flat(*weights), flat(*gradients), weight_decay=0.1) == 1.0
