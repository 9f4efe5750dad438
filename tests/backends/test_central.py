"""The server's copy of a model."""

import numpy as np
import pytest

from backends.base import Variable
from backends.central import Central
from backends.layout import Layout


@pytest.fixture
def central():
    layout = Layout((Variable("w", (3,), 0, 3),), (Variable("mean", (1,), 0, 1),))
    return Central(layout, np.ones(3, np.float32), np.zeros(3, np.float32), np.full(1, 7, np.float32))


def test_an_update_is_momentum(central):
    assert central.update(np.full(3, 0.5, np.float32), 0.5)
    assert central.update(np.full(3, 0.5, np.float32), 0.5)
    np.testing.assert_allclose(central.weights, 1 - 0.5 - 0.75)
    assert central.service_s > 0


def test_gradients_that_are_not_finite_change_nothing(central):
    assert not central.update(np.array([0, np.nan, 0], np.float32), 0.5)
    np.testing.assert_array_equal(central.weights, 1)
    np.testing.assert_array_equal(central.snapshot({}).momentum, 0)
    assert central.service_s is None


def test_state_is_the_mean_of_what_workers_report(central):
    assert central.state() == [7]
    central.report("a", np.full(1, 2, np.float32))
    central.report("b", np.full(1, 4, np.float32))
    assert central.state() == [3]
    central.forget("a")
    assert central.state() == [4]
    central.forget("b")
    assert central.state() == [4]
