"""A worker pulls all weights first, and then only the layers that have changed since."""

import numpy as np
import pytest

from backends.frameworks.layout import Variable
from backends.server.delta_pull import DeltaPull
from backends.strategies.message import DENSE, dense, half, spans, sparse
from tests.backends.strategies.vectors import floats

VARIABLES = (Variable("a", (2,), 0, 2), Variable("b", (3,), 2, 3), Variable("c", (), 5, 1))


GRADIENT = floats(4, -4, 1, -1, 1, 2)


def test_a_worker_pulls_everything_first_and_then_what_has_changed():
    delta_pull = DeltaPull(VARIABLES)
    weights = floats(0, 1, 2, 3, 4, 5)
    assert delta_pull.pull("nano", weights).kind == DENSE
    assert delta_pull.pull("nano", weights).head.counts == (0, 0)
    delta_pull.record_update(spans(weights, [(5, 6)]))
    np.testing.assert_array_equal(delta_pull.pull("nano", weights).arrays[0], [[5, 6]])
    assert delta_pull.pull("nano", weights).head.counts == (0, 0)


def test_each_worker_has_its_own_news():
    delta_pull = DeltaPull(VARIABLES)
    weights = floats(0, 1, 2, 3, 4, 5)
    delta_pull.pull("nano", weights)
    delta_pull.record_update(spans(weights, [(0, 2)]))
    delta_pull.pull("tx2", weights)
    delta_pull.record_update(spans(weights, [(5, 6)]))
    np.testing.assert_array_equal(delta_pull.pull("nano", weights).arrays[0], [[0, 2], [5, 6]])
    np.testing.assert_array_equal(delta_pull.pull("tx2", weights).arrays[0], [[5, 6]])


@pytest.mark.parametrize(
    ("message", "layers"),
    [
        (dense(GRADIENT), [[0, 2], [2, 5], [5, 6]]),
        (half(GRADIENT), [[0, 2], [2, 5], [5, 6]]),
        (spans(GRADIENT, []), []),
        (spans(GRADIENT, [(1, 3)]), [[0, 2], [2, 5]]),
        (spans(GRADIENT, [(2, 5)]), [[2, 5]]),
        (sparse(GRADIENT, np.array([0, 1, 5])), [[0, 2], [5, 6]]),
        (sparse(GRADIENT, np.array([4])), [[2, 5]]),
    ],
)
def test_a_layer_has_changed_where_anything_of_it_was_sent(message, layers):
    delta_pull = DeltaPull(VARIABLES)
    delta_pull.pull("nano", GRADIENT)
    delta_pull.record_update(message)
    news = delta_pull.pull("nano", GRADIENT)
    if len(layers) == len(VARIABLES):
        assert news.kind == DENSE
    else:
        assert news.arrays[0].tolist() == layers


def test_a_worker_that_comes_back_gets_everything():
    delta_pull = DeltaPull(VARIABLES)
    delta_pull.pull("nano", GRADIENT)
    delta_pull.set_members(())
    assert delta_pull.pull("nano", GRADIENT).kind == DENSE
