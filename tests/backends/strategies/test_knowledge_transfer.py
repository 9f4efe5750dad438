"""The worker with the smallest losses hands its weights on."""

import math

import numpy as np
import pytest

from backends.optimizers.sgd import BLOCK
from backends.strategies.knowledge_transfer import BEST_TO_WORST, LossWindow, best, due, merge, takers, worst

MEANS = {"a": 0.5, "b": 0.2, "c": 0.9}


def lost(*losses, window=3):
    kept = LossWindow(window)
    for loss in losses:
        kept.add(loss)
    return kept


@pytest.mark.parametrize(("losses", "mean"), [((4,), 4), ((4, 2), 3), ((4, 2, 3), 3), ((9, 4, 2, 3), 3)])
def test_the_mean_is_of_the_last_losses_only(losses, mean):
    assert lost(*losses).mean() == mean


@pytest.mark.parametrize("losses", [(), (1,), (1, 2, 3), (1, 2, 3, 4)])
def test_restored_losses_go_on_as_the_saved_ones(losses):
    saved, restored = lost(*losses), LossWindow(3)
    restored.restore(saved.state())
    assert restored.mean() == saved.mean()
    saved.add(7)
    restored.add(7)
    assert restored.mean() == saved.mean()


def test_the_losses_of_another_window_are_refused():
    with pytest.raises(ValueError, match="not the state of LossWindow of the last 3"):
        LossWindow(3).restore(LossWindow(4).state())


def test_it_is_due_after_every_period():
    assert [iteration for iteration in range(301) if due(iteration)] == [100, 200, 300]
    assert [iteration for iteration in range(7) if due(iteration, period=3)] == [3, 6]


def test_all_others_take_from_the_best_or_only_the_worst_does():
    assert best(MEANS) == "b"
    assert worst(MEANS) == "c"
    assert takers(MEANS) == ("a", "c")
    assert takers(MEANS, BEST_TO_WORST) == ("c",)


def test_ties_are_settled_by_name_and_best_is_never_worst():
    assert (best({"b": 1.0, "a": 1.0}), worst({"b": 1.0, "a": 1.0})) == ("a", "b")


def test_a_loss_that_is_no_number_is_the_worst():
    means = {"a": math.nan, "b": 3.0, "c": 4.0}
    assert (best(means), worst(means)) == ("b", "a")


@pytest.mark.parametrize(
    ("strength", "expected"), [(0.75, [1.0, 5.0]), (0.0, [4.0, 2.0]), (1.0, [0.0, 6.0]), (0.5, [2.0, 4.0])]
)
def test_weights_go_towards_those_of_the_best(strength, expected):
    weights, theirs = np.array([4, 2], np.float32), np.array([0, 6], np.float32)
    merge(weights, theirs, strength)
    np.testing.assert_array_equal(weights, expected)
    np.testing.assert_array_equal(theirs, [0, 6])


def test_three_quarters_of_the_way_in_every_block():
    weights = np.full(BLOCK + 1, 4, np.float32)
    merge(weights, np.zeros(BLOCK + 1, np.float32))
    np.testing.assert_array_equal(weights, 1)
