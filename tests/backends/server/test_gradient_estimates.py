"""What a server has of each worker's gradient, where messages are changes of it."""

import numpy as np

from backends.server.gradient_estimates import GradientEstimates
from backends.strategies.message import sparse, whole


def change(index, value):
    values = np.zeros(3, np.float32)
    values[index] = value
    return sparse(values, np.array([index]))


def test_changes_add_up_by_worker():
    estimates = GradientEstimates()
    estimates.begin("nano", 3, ())
    estimates.begin("tx2", 3, ())
    first = estimates.completed("nano", change(0, 2.0))
    assert whole(estimates.completed("tx2", change(1, 5.0))).tolist() == [0, 5, 0]
    assert whole(estimates.completed("nano", change(2, -1.0))).tolist() == [2, 0, -1]
    assert whole(first).tolist() == [2, 0, 0]


def test_one_that_joins_again_begins_anew_or_with_what_it_resumes_from():
    estimates = GradientEstimates()
    estimates.begin("nano", 3, ())
    estimates.completed("nano", change(0, 2.0))
    estimates.begin("nano", 3, ())
    assert whole(estimates.completed("nano", change(1, 5.0))).tolist() == [0, 5, 0]
    estimates.begin("nano", 3, (np.array([1, 1, 1], np.float32), np.zeros(3, np.float32)))
    assert whole(estimates.completed("nano", change(1, 5.0))).tolist() == [1, 6, 1]
