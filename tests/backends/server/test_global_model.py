"""The global model is updated by gradients and pulled by workers."""

import numpy as np
import pytest

from backends.frameworks.layout import Layout, Variable
from backends.frameworks.optimizer import ADAM, LARS, SGD, OptimizerSettings
from backends.optimizers import registry
from backends.server.global_model import GlobalModel
from backends.strategies.message import dense, sparse

NO_STATE = np.empty(0, np.float32)


def made_of(layout, weights, state=NO_STATE, kind=SGD):
    return GlobalModel(layout, weights, registry.build(kind, layout.variables), state)


@pytest.fixture
def model():
    layout = Layout((Variable("w", (3,), 0, 3),), (Variable("mean", (1,), 0, 1),))
    return made_of(layout, np.ones(3, np.float32), np.full(1, 7, np.float32))


def test_an_update_is_momentum(model):
    model.update([dense(np.full(3, 0.5, np.float32))], [1.0], OptimizerSettings(momentum=0.5))
    model.update([dense(np.full(3, 0.5, np.float32))], [1.0], OptimizerSettings(momentum=0.5))
    np.testing.assert_allclose(model.weights, 1 - 0.5 - 0.75)
    assert model.service_s > 0


@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_several_gradients_count_as_their_mean(model, momentum):
    given = [np.array([1, 2, 3], np.float32), np.array([3, 2, 1], np.float32)]
    model.update(
        [dense(given[0]), sparse(given[1], np.array([0, 2]))], [0.5, 0.5], OptimizerSettings(momentum=momentum)
    )
    np.testing.assert_allclose(model.weights, 1 - np.array([2, 1, 2]))


def test_gradients_that_are_not_finite_are_not_accepted(model):
    assert not model.accepts(dense(np.array([0, np.nan, 0], np.float32)))
    assert model.accepts(dense(np.zeros(3, np.float32)))
    assert model.service_s is None


def test_the_state_is_the_mean_of_the_reported_states(model):
    assert model.state() == [7]
    model.report_state("a", np.full(1, 2, np.float32))
    model.report_state("b", np.full(1, 4, np.float32))
    assert model.state() == [3]
    model.forget_state("a")
    assert model.state() == [4]
    model.forget_state("b")
    assert model.state() == [4]


def test_lars_scales_the_sum_of_gradients_and_not_each_of_them():
    # |w| = 5 and |g| = 1: trust = 0.0025 * 5 / 1, and a rate of 8 makes that 0.1.
    layout = Layout((Variable("w", (1, 2), 0, 2),), ())
    made = made_of(layout, np.array([3, 4], np.float32), kind=LARS)
    parts = [np.array([1.2, 0], np.float32), np.array([0, 1.6], np.float32)]
    made.update([dense(each) for each in parts], [0.5, 0.5], OptimizerSettings(8.0, 0.0, 0.0, LARS))
    np.testing.assert_allclose(made.weights, [2.94, 3.92], rtol=1e-6)


@pytest.mark.parametrize(("decay", "kind"), [(0.0, "spans"), (0.1, "dense")])
def test_with_lars_a_worker_pulls_all_where_weights_decay(decay, kind):
    layout = Layout((Variable("w", (1, 2), 0, 2), Variable("v", (1, 2), 2, 2)), ())
    made = made_of(layout, np.ones(4, np.float32), kind=LARS)
    made.pull("a")
    made.update([sparse(np.ones(4, np.float32), np.array([1]))], [1.0], OptimizerSettings(1.0, 0.0, decay, LARS))
    assert made.pull("a").kind == kind


@pytest.mark.parametrize("parts", [(1.0,), (0.5, 0.5)], ids=["one gradient", "two"])
def test_adam_takes_the_sum_of_gradients_and_moves_all_weights_from_then_on(parts):
    # The first step of Adam is rate sign(g).
    layout = Layout((Variable("w", (1, 2), 0, 2), Variable("v", (1, 2), 2, 2)), ())
    made = made_of(layout, np.ones(4, np.float32), kind=ADAM)
    made.pull("a")
    optimizer = OptimizerSettings(0.1, kind=ADAM)
    given = np.array([3, -2, 0, 0], np.float32)
    made.update([dense(given.copy()) for _ in parts], parts, optimizer)
    np.testing.assert_allclose(made.weights, [0.9, 1.1, 1, 1], rtol=1e-6)
    made.pull("a")
    made.update([sparse(np.ones(4, np.float32), np.array([1]))], [1.0], optimizer)
    assert made.pull("a").kind == "dense"
