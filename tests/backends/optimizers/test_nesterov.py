"""The outer optimizers, against what is computed by hand."""

import numpy as np
import pytest

from backends.frameworks.layout import Variable
from backends.frameworks.optimizer import DELAYED_NESTEROV, NESTEROV, OptimizerSettings
from backends.optimizers.nesterov import DelayedNesterov, Nesterov

ONE = (Variable("w", (1,), 0, 1),)


def steps(made, changes, settings):
    """The weight, 10 at the beginning, after each of some changes."""
    weights, found = np.array([10.0], np.float32), []
    for change in changes:
        made.apply(weights, np.array([change], np.float32), settings)
        found.append(float(weights[0]))
    return found


def test_delayed_nesterov_adds_momentum_at_every_second_update() -> None:
    settings = OptimizerSettings(1.0, 0.5, kind=DELAYED_NESTEROV, delay=2)
    # 10 - 4/2 = 8; 8 - 2/2 = 7, m = (4 + 2)/2 = 3, 7 - 0.5 * 3 = 5.5; 5.5 - 1 = 4.5;
    # 4.5 - 1 = 3.5, m = 0.5 * 3 + 2 = 3.5, 3.5 - 1.75 = 1.75
    assert steps(DelayedNesterov(ONE), [4.0, 2.0, 2.0, 2.0], settings) == [8.0, 5.5, 4.5, 1.75]


@pytest.mark.parametrize("momentum", [0.0, 0.7])
def test_delayed_by_one_it_is_nesterov(momentum: float) -> None:
    changes = [1.0, -0.5, 0.25, 2.0]
    delayed = steps(DelayedNesterov(ONE), changes, OptimizerSettings(0.8, momentum, kind=DELAYED_NESTEROV, delay=1))
    assert delayed == pytest.approx(steps(Nesterov(ONE), changes, OptimizerSettings(0.8, momentum, kind=NESTEROV)))


def test_every_block_of_a_large_model_is_updated() -> None:
    size = 300_000
    made = Nesterov((Variable("w", (size,), 0, size),))
    weights = np.ones(size, np.float32)
    made.apply(weights, np.full(size, 0.25, np.float32), OptimizerSettings(1.0, 0.5, kind=NESTEROV))
    np.testing.assert_array_equal(weights, np.float32(1 - 0.25 - 0.125))


def test_momentum_of_long_ago_does_not_come_back() -> None:
    made = Nesterov(ONE)
    steps(made, [4.0], OptimizerSettings(1.0, 0.5, kind=NESTEROV))
    steps(made, [1.0], OptimizerSettings(1.0, 0.0, kind=NESTEROV))
    assert made.slots["momentum"][0] == 0.0


def test_momentum_is_of_the_mean_of_as_many_changes_as_came() -> None:
    made = DelayedNesterov(ONE)
    steps(made, [2.0, 2.0, 2.0], OptimizerSettings(1.0, 0.5, kind=DELAYED_NESTEROV, delay=5))
    steps(made, [2.0], OptimizerSettings(1.0, 0.5, kind=DELAYED_NESTEROV, delay=2))
    assert made.slots["momentum"][0] == 2.0
