"""A round of local steps: what moves, what is restored, and what is left in place of a gradient."""

import numpy as np
import pytest

from backends.frameworks.optimizer import ADAM, OptimizerSettings
from backends.protocol.frames import LocalRound
from backends.training.local_round import LocalUpdates, RoundAbandoned
from tests.backends.fakes import BATCH, Diverging, DrawnBatches, Faulty, Softmax, train_on_all

SGD = OptimizerSettings(0.1, 0.5)


def local_updates(replica, optimizer=SGD, reset=False):
    return LocalUpdates(replica, DrawnBatches(), optimizer, reset)


def test_a_round_leaves_the_change_and_the_weights_as_they_were():
    replica = Softmax()
    before = replica.weights.copy()
    made = local_updates(replica).make(LocalRound(4), 0.1, BATCH)
    assert (made.steps, made.samples) == (4, 4 * BATCH)
    np.testing.assert_array_equal(replica.weights, before)
    np.testing.assert_allclose(before - replica.gradients, train_on_all(4, [DrawnBatches()], 0.5), rtol=1e-5, atol=1e-6)


def test_a_member_without_others_makes_plain_steps_bit_by_bit():
    replica = Softmax()
    made = local_updates(replica)
    for _ in range(6):
        made.make(LocalRound(1), 0.1, BATCH, stays=True)
    np.testing.assert_array_equal(replica.weights, train_on_all(6, [DrawnBatches()], 0.5))
    assert not replica.gradients.any()


def test_the_inner_optimizer_goes_on_in_the_next_round_unless_it_is_reset():
    kept, reset = Softmax(), Softmax()
    for replica, resets in ((kept, False), (reset, True)):
        made = local_updates(replica, reset=resets)
        made.make(LocalRound(3), 0.1, BATCH, stays=True)
        made.make(LocalRound(3), 0.1, BATCH, stays=True)
    np.testing.assert_array_equal(kept.weights, train_on_all(6, [DrawnBatches()], 0.5))
    again = train_on_all(3, [DrawnBatches(skip=3)], 0.5, replica=_at(train_on_all(3, [DrawnBatches()], 0.5)))
    np.testing.assert_array_equal(reset.weights, again)


def _at(weights):
    replica = Softmax()
    replica.weights[:] = weights
    return replica


def test_a_round_that_was_kept_is_not_made_again():
    replica = Softmax()
    rounds = local_updates(replica)
    made = rounds.make(LocalRound(4), 0.1, BATCH)
    change = replica.gradients.copy()
    replica.gradients.fill(7.0)  # as an exchange that was interrupted may leave it
    rounds.keep(made)
    assert rounds.make(LocalRound(2), 0.1, BATCH) is made
    np.testing.assert_array_equal(replica.gradients, change)
    assert rounds.make(LocalRound(2), 0.1, BATCH) is not made


@pytest.mark.parametrize(
    ("replica", "expected"), [(Softmax(), RoundAbandoned), (Faulty("gradient", 2), ArithmeticError)]
)
def test_a_round_that_is_abandoned_or_fails_leaves_the_weights_as_they_were(replica, expected):
    before, state, asked = replica.weights.copy(), replica.state.copy(), iter([False, False, True])
    with pytest.raises(expected):
        local_updates(replica).make(LocalRound(9), 0.1, BATCH, abandoned=lambda: next(asked))
    np.testing.assert_array_equal(replica.weights, before)
    np.testing.assert_array_equal(replica.state, state)


def test_a_loss_that_is_not_finite_ends_the_round():
    replica = Diverging(loss=float("nan"), good=2)
    made = local_updates(replica).make(LocalRound(50), 0.1, BATCH)
    assert np.isnan(made.taken.loss)
    assert replica._steps == 3


@pytest.mark.parametrize("optimizer", [SGD, OptimizerSettings(0.01, kind=ADAM)])
def test_what_the_optimizer_keeps_comes_back_from_a_checkpoint(optimizer):
    one, other = Softmax(), Softmax()
    first = local_updates(one, optimizer)
    first.make(LocalRound(3), optimizer.rate, BATCH, stays=True)
    second = LocalUpdates(other, DrawnBatches(skip=3), optimizer, False)
    other.weights[:] = one.weights
    second.restore(first.state())
    for rounds in (first, second):
        rounds.make(LocalRound(3), optimizer.rate, BATCH, stays=True)
    np.testing.assert_array_equal(one.weights, other.weights)
