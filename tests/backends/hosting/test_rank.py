"""Ranks make the same rounds together, and come to what one device comes to with all samples."""

import numpy as np
import pytest

from backends.frameworks.optimizer import OptimizerSettings
from backends.frameworks.process_group import GroupError
from backends.protocol.events import CheckpointWritten, Diverged, Evaluated, Joined, Progress
from backends.training import checkpoint
from backends.training.compute_clock import clock_of
from backends.training.lr_schedule import RateSchedule
from backends.training.step import gradient
from tests.backends.fakes import Diverging, Faulty, Softmax, arrays_of, run_spec, train_on_all
from tests.backends.rank_run import RankThreads, drawn
from tests.running import until

ENDLESS = 10**9
PLAIN = {"optimizer": OptimizerSettings(0.1, 0.5, 0.0), "schedule": RateSchedule()}


@pytest.fixture
def spec(tmp_path):
    def made(steps, **changes):
        return run_spec(tmp_path, steps, **{**PLAIN, **changes})

    return made


def saved(spec):
    return checkpoint.read(spec.checkpoints.path)


def test_unequal_batches_come_to_what_one_device_learns_from_all_of_them(spec):
    run = RankThreads(spec(30), (3, 5, 12))
    run.end()
    alone = train_on_all(10, [drawn(number, size) for number, size in enumerate((3, 5, 12))], 0.5)
    for replica in run.replicas:
        np.testing.assert_allclose(replica.weights, alone, rtol=1e-4, atol=1e-6)


def test_gradients_are_clipped_when_they_are_averaged(spec):
    clipped = PLAIN["optimizer"]._replace(clip_norm=0.05)
    run = RankThreads(spec(20, optimizer=clipped), (3, 13))
    run.end()
    alone, sources = Softmax(), [drawn(number, size) for number, size in enumerate((3, 13))]
    for _ in range(10):
        together = tuple(map(np.concatenate, zip(*(next(each) for each in sources), strict=True)))
        gradient(alone, together, clipped.in_gradients)
        alone.update(clipped)
    for replica in run.replicas:
        np.testing.assert_allclose(replica.weights, alone.weights, rtol=1e-4, atol=1e-6)


def test_every_round_counts_as_a_step_of_every_rank(spec):
    settings = spec(10)
    accounts = RankThreads(settings, (8, 8, 8)).end()
    account = accounts[0][0]
    assert (account.done, account.finished, account.reason) == (10, True, None)
    assert {name: row.steps for name, row in account.workers.items()} == {"rank0": 4, "rank1": 4, "rank2": 4}
    assert [spent.steps for _, spent in accounts] == [4, 4, 4]
    assert saved(settings).meta["step"] == 10


def test_the_first_rank_evaluates_and_saves_for_all(spec):
    run = RankThreads(spec(12, evaluate_every=5, checkpoint_every=4), (8, 8))
    run.end()
    assert [each.step for each in run.emitted(0, Evaluated)] == [6, 10, 12]
    assert run.emitted(0, CheckpointWritten)[-1].step == 12
    assert [each.member for each in run.emitted(0, Joined)] == ["rank0", "rank1"]
    assert all(row.connected and row.loss for row in run.emitted(0, Progress)[-1].workers.values())
    assert not run.events[1]


def test_checkpoints_go_by_the_clock_of_the_first_rank_and_all_take_part(spec):
    now_s, settings = [0.0], spec(ENDLESS, checkpoint_every_s=60.0)
    run = RankThreads(settings, (8, 8), clock=lambda: now_s[0])
    until(lambda: run.ranks.keys() == {0, 1} and run.ranks[0].step_queue.done, lambda: "no step")
    for minute in (1, 2):
        now_s[0] += 61.0
        until(lambda minute=minute: len(run.emitted(0, CheckpointWritten)) >= minute, lambda: "no checkpoint")
    run.stopping[0].set()
    run.end()
    assert len(run.emitted(0, CheckpointWritten)) == 3
    np.testing.assert_array_equal(saved(settings).state, run.replicas[1].state)  # the mean of both


def test_the_first_rank_saves_the_last_whole_round_where_another_fails(spec):
    settings = spec(ENDLESS)
    all_made = Faulty("gradient", 5, lambda: until(lambda: run.ranks[0].step_queue.done == 8, lambda: "hangs"))
    run = RankThreads(settings, (8, 8), [Softmax(), all_made])
    with pytest.raises(GroupError):
        run.end()
    run.ranks[0].save_after_failure()
    assert saved(settings).meta["step"] == 8
    whole = RankThreads(spec(8, checkpoint_path=None), (8, 8))
    whole.end()
    np.testing.assert_array_equal(saved(settings).weights, whole.replicas[0].weights)


def test_running_statistics_are_saved_as_their_mean(spec):
    settings = spec(8)
    run = RankThreads(settings, (8, 8))
    run.end()
    np.testing.assert_array_equal(run.replicas[0].state, run.replicas[1].state)
    np.testing.assert_array_equal(saved(settings).state, run.replicas[0].state)


@pytest.mark.parametrize("kind", ["sgd", "lars", "adam", "adamw"])
def test_resumed_they_come_to_the_same_as_without_a_break(spec, tmp_path, kind):
    changes = {
        "evaluate_every": 4,
        "schedule": RateSchedule("step", 24),
        "optimizer": OptimizerSettings(0.1, 0.9, 0.01, kind),
    }
    whole = spec(24, checkpoint_path=str(tmp_path / "whole.npz"), **changes)
    RankThreads(whole, (4, 8)).end()
    RankThreads(spec(12, **changes), (4, 8)).end()
    rest = spec(24, resume=str(tmp_path / "checkpoint.npz"), **changes)
    (account, spent), _ = RankThreads(rest, (4, 8), [Softmax(7), Softmax(8)], skip=6).end()
    for part, values in arrays_of(saved(whole)).items():
        np.testing.assert_allclose(arrays_of(saved(rest))[part], values, rtol=1e-4, atol=1e-6)
    assert spent.steps == 6
    assert [each.step for each in account.evaluations] == [16, 20, 24]


@pytest.mark.parametrize("told", [0, 1])
def test_a_rank_that_is_told_to_stop_ends_all_at_the_same_round(spec, told):
    settings = spec(ENDLESS)
    run = RankThreads(settings, (8, 8))
    run.stopping[told].set()
    accounts = run.end()
    assert [account.reason for account, _ in accounts] == ["stopped", "stopped"]
    assert len({account.done for account, _ in accounts}) == 1
    np.testing.assert_array_equal(run.replicas[0].weights, run.replicas[1].weights)
    assert saved(settings).meta["step"] == accounts[0][0].done
    assert all(group.closed for group in run.groups)


@pytest.mark.parametrize("bad", [0, 1])
def test_a_loss_that_is_not_finite_ends_all_and_names_its_rank(spec, bad, tmp_path):
    replicas = [Softmax(), Softmax()]
    replicas[bad] = Diverging(loss=float("nan"))
    run = RankThreads(spec(ENDLESS), (8, 8), replicas)
    (account, _), _ = run.end()
    assert not account.finished
    assert "training diverged" in account.reason and f"rank{bad}" in account.reason
    assert [event.member for event in run.emitted(bad, Diverged)][0] == f"rank{bad}"
    assert not (tmp_path / "checkpoint.npz").exists()


@pytest.mark.parametrize("good", [0, 2])
def test_the_step_that_is_named_is_the_first_that_gave_such_a_loss_on_any_rank(spec, good):
    """Its gradient spoils the weights of the other, which says so itself in the next round."""
    nan = float("nan")
    accounts = RankThreads(spec(ENDLESS), (8, 8), [Softmax(), Diverging(nan, nan, good)]).end()
    for account, _ in accounts:
        assert f"the gradient at step {2 * good} on rank1 gave a loss of nan" in account.reason
        assert ("the weights are still the initial ones" in account.reason) == (good == 0)


def test_ranks_with_different_models_do_not_begin(spec):
    other = Softmax()
    other.variables = other.variables[::-1]
    with pytest.raises(ValueError, match="rank1: its model is not the run's: .* let every device build the same model"):
        RankThreads(spec(8), (8, 8), [Softmax(), other]).end()


def test_divergence_in_the_very_last_round_is_no_success(spec):
    run = RankThreads(spec(6), (8, 8), [Diverging(loss=float("nan")), Softmax()])
    (account, _), _ = run.end()
    assert not account.finished and "diverged" in account.reason


def test_ranks_whose_exchange_breaks_off_fail(spec):
    class Killed(Softmax):
        def gradient(self, *args, **options):
            raise MemoryError

    run = RankThreads(spec(ENDLESS), (8, 8), [Softmax(), Killed()])
    with pytest.raises(GroupError, match="broke off"):
        run.end()


def test_the_clock_of_a_rank_stands_still_while_it_waits_for_another(spec):
    waited = []

    class Late(Softmax):
        def gradient(self, *args, **options):
            until(lambda: clock_of(first).under_way()[2] is not None, lambda: "the first rank has computed nothing")
            waited.append(clock_of(first).under_way()[1])
            return super().gradient(*args, **options)

    first = Softmax()
    RankThreads(spec(2), (8, 8), (first, Late())).end()
    assert waited == [0.0]


def test_more_steps_than_asked_for_in_the_checkpoint_are_refused(spec, tmp_path):
    RankThreads(spec(12), (8, 8)).end()
    with pytest.raises(ValueError, match="ask for more"):
        RankThreads(spec(6, resume=str(tmp_path / "checkpoint.npz")), (8, 8)).end()
