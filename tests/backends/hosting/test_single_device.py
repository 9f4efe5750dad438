"""A cluster of one device trains as any other would, without a network."""

import json
import threading

import numpy as np
import pytest

from backends.data.loader import ArraySamples
from backends.frameworks.optimizer import MOMENTUM, OptimizerSettings
from backends.hosting.run_clock import RunClock
from backends.hosting.single_device import SingleDevice
from backends.protocol.events import CheckpointWritten, Diverged
from backends.strategies import sample_streams
from backends.strategies.strategy import Strategy
from backends.training import checkpoint, step
from backends.training.lr_schedule import RateSchedule
from backends.training.run_spec import Checkpoints
from backends.training.stopping import TARGET_REACHED, MetricTarget, StopRule
from tests.backends.fakes import (
    BATCH,
    TEST,
    Diverging,
    DrawnBatches,
    Faulty,
    FaultyBackward,
    Softmax,
    arrays_of,
    images,
    run_spec,
    train_on_all_with,
)
from tests.backends.replicas import NORMALISED, small_replica
from tests.backends.server_run import ServerRun, WorkerThread
from tests.hand_clock import HandClock
from tests.installed import MIXED
from tests.running import HANG_S, until


def never():
    return False


def train(spec, replica=None, skip=0, should_stop=never, test=TEST):
    """Account, spent, events and the checkpoint that is left."""
    events = []
    device = SingleDevice(spec, replica or Softmax(), DrawnBatches(skip), events.append)
    return device.train(test, should_stop), device.spent, events, checkpoint.read(spec.checkpoints.path)


@pytest.mark.parametrize("kind", ["sgd", "lars", "adam", "adamw"])
def test_it_comes_to_the_same_as_one_worker_through_a_server(tmp_path, kind):
    plan = {"optimizer": OptimizerSettings(0.01, 0.9, 0.001, kind), "evaluate_every": 6}
    alone, spent, _, left = train(run_spec(tmp_path, 20, **plan))
    served = run_spec(tmp_path, 20, checkpoint_path=str(tmp_path / "served.npz"), **plan)
    run = ServerRun(served)
    WorkerThread(run, "self").end()
    account = run.account()
    other = checkpoint.read(served.checkpoints.path)
    for part, values in arrays_of(other).items():
        np.testing.assert_allclose(arrays_of(left)[part], values, rtol=1e-4, atol=1e-6)
    assert set(alone.workers) == set(account.workers)
    assert [one.step for one in alone.evaluations] == [one.step for one in account.evaluations]
    assert alone.evaluations[-1].loss == pytest.approx(account.evaluations[-1].loss, rel=1e-4)
    assert (alone.finished, alone.reason, alone.done, spent.steps) == (True, None, 20, 20)
    assert alone.workers["self"].bytes == 0


@pytest.mark.parametrize("kind", ["sgd", "lars", "adam", "adamw"])
def test_resumed_it_comes_to_the_same_as_without_a_break(tmp_path, kind):
    optimizer = OptimizerSettings(0.1, 0.9, 0.001, kind)
    plan = {"optimizer": optimizer, "schedule": RateSchedule("step", 20), "evaluate_every": 5}
    _, _, _, whole = train(run_spec(tmp_path, 20, **plan))
    _, _, _, half = train(run_spec(tmp_path, 9, **plan))
    account, spent, _, rest = train(
        run_spec(tmp_path, 20, resume=str(tmp_path / "checkpoint.npz"), **plan), Softmax(seed=5), 9
    )
    assert half.meta["step"] == 9
    for part, values in arrays_of(whole).items():
        np.testing.assert_array_equal(arrays_of(rest)[part], values)
    assert spent.steps == 11
    assert [one.step for one in account.evaluations] == [10, 15, 20]


@pytest.mark.parametrize("frameworks", [MIXED])
@pytest.mark.parametrize("turned", [False, True])
def test_what_one_framework_saved_another_goes_on_with(tmp_path, frameworks, turned):
    first, other = frameworks[::-1] if turned else frameworks
    train(run_spec(tmp_path, 2), small_replica(first, NORMALISED))
    ends = {}
    for name in frameworks:
        left = str(tmp_path / name)
        then = run_spec(tmp_path, 6, evaluate_every=1, resume=str(tmp_path / "checkpoint.npz"), checkpoint_path=left)
        ends[name] = train(then, small_replica(name, NORMALISED), 2)
    (account, spent, _, same), (account_of_other, _, _, changed) = ends[first], ends[other]
    assert spent.steps == 4
    losses, others = ([one.loss for one in each.evaluations] for each in (account, account_of_other))
    assert len(losses) == 4
    np.testing.assert_allclose(losses, others, rtol=1e-4)
    for part, values in arrays_of(same).items():
        np.testing.assert_allclose(arrays_of(changed)[part], values, rtol=1e-3, atol=1e-5)


def test_what_a_cluster_saved_one_device_goes_on_with(tmp_path):
    run = ServerRun(run_spec(tmp_path, 6))
    WorkerThread(run, "nano").end()
    run.account()
    account, spent, _, left = train(run_spec(tmp_path, 10, resume=run.spec.checkpoints.path))
    assert (account.finished, spent.steps, left.meta["step"]) == (True, 4, 10)


def test_asked_to_stop_it_leaves_a_checkpoint_to_go_on_from(tmp_path):
    asked = iter([False] * 4 + [True] * 9)
    account, spent, _, left = train(run_spec(tmp_path, 10), should_stop=lambda: next(asked))
    assert (account.finished, account.reason, account.done) == (False, "stopped", 4)
    assert left.meta["step"] == spent.steps == 4


def test_it_ends_with_the_first_evaluation_at_its_target_and_saves_its_weights(tmp_path):
    whole, _, _, _ = train(run_spec(tmp_path, 20, evaluate_every=5))
    losses = [each.loss for each in whole.evaluations]
    rule = StopRule(MetricTarget("loss", losses[1]))
    account, _, _, left = train(run_spec(tmp_path, 20, evaluate_every=5, stop_rule=rule))
    first = next(place for place, loss in enumerate(losses) if loss <= losses[1])
    assert (account.finished, account.reason, account.done) == (False, TARGET_REACHED, 5 * (first + 1))
    assert left.meta["step"] == account.done and len(account.evaluations) == first + 1


def test_checkpoints_go_by_the_clock_also_while_a_step_hangs(tmp_path):
    clock, hanging, go_on, events = HandClock(), threading.Event(), threading.Event(), []
    replica = FaultyBackward("gradient", 5, lambda: (hanging.set(), go_on.wait(HANG_S)))
    device = SingleDevice(run_spec(tmp_path, 20, checkpoint_every_s=60.0), replica, DrawnBatches(), events.append)
    device.clock = RunClock(clock)
    training = threading.Thread(target=lambda: pytest.raises(ArithmeticError, device.train, TEST, never))
    training.start()
    hanging.wait(HANG_S)
    assert not any(isinstance(event, CheckpointWritten) for event in events)
    clock.now_s = 61.0
    until(lambda: any(isinstance(event, CheckpointWritten) for event in events), lambda: str(events))
    assert_saved_after(4, device)
    go_on.set()
    training.join()


def assert_saved_after(steps, device):
    """Its checkpoint is that of a run that ended after so many steps."""
    replica = Softmax()
    whole = SingleDevice(device.spec._replace(checkpoints=Checkpoints(None, 0)), replica, DrawnBatches(), print)
    whole.train(TEST, lambda: whole.step_queue.done == steps)
    saved = checkpoint.read(device.spec.checkpoints.path)
    assert saved.meta["step"] == steps
    np.testing.assert_array_equal(saved.weights, replica.weights)
    np.testing.assert_array_equal(saved.state, replica.state)


def test_slow_writes_take_no_more_than_a_tenth_of_the_time(tmp_path, monkeypatch):
    clock, events, write = HandClock(), [], checkpoint.write

    def write_slowly(*given):
        clock.now_s += 100.0
        write(*given)

    class TimedSteps(Softmax):
        def gradient(self, *given, **options):
            clock.now_s += 1.0
            device.save_in_time()  # as the device's own thread does
            return super().gradient(*given, **options)

    monkeypatch.setattr(checkpoint, "write", write_slowly)
    device = SingleDevice(
        run_spec(tmp_path, 2000, checkpoint_every_s=60.0), TimedSteps(), DrawnBatches(), events.append
    )
    device.clock = RunClock(clock)
    device.train(TEST, never)
    assert [event.step for event in events if isinstance(event, CheckpointWritten)] == [59, 959, 1859, 2000]


@pytest.mark.parametrize(("what", "call", "saved"), [("gradient", 5, 4), ("evaluate", 2, 6), ("gradient", 1, None)])
def test_an_error_ends_it_with_the_weights_of_the_last_whole_step(tmp_path, what, call, saved):
    events = []
    spec = run_spec(tmp_path, 20, evaluate_every=3)
    device = SingleDevice(spec, FaultyBackward(what, call), DrawnBatches(), events.append)
    with pytest.raises(ArithmeticError, match="a faulty " + what), device.saved_on_failure():
        device.train(TEST, never)
    assert [event.step for event in events if isinstance(event, CheckpointWritten)] == ([saved] if saved else [])
    assert events[-1].done == (saved or 0)
    if saved:
        assert_saved_after(saved, device)


def test_weights_in_the_middle_of_an_update_are_no_checkpoint(tmp_path):
    device = SingleDevice(
        run_spec(tmp_path, 20, checkpoint_every=2), Faulty("update", 4), DrawnBatches(), lambda event: None
    )
    with pytest.raises(ArithmeticError), device.saved_on_failure():
        device.train(TEST, never)
    assert checkpoint.peek(device.spec.checkpoints.path)["step"] == 2


@pytest.mark.parametrize("loss", [np.nan, np.inf])
def test_a_run_that_diverges_ends_says_so_and_keeps_its_last_good_checkpoint(tmp_path, loss):
    account, _, events, left = train(run_spec(tmp_path, 10, checkpoint_every=1), Diverging(loss))
    assert (account.finished, account.done, left.meta["step"]) == (False, 2, 2)
    assert "training diverged: the gradient at step 2 on self" in account.reason
    assert [event.step for event in events if isinstance(event, Diverged)] == [2]
    json.dumps([account, events], allow_nan=False)


def test_weights_spoilt_by_a_gradient_are_not_saved(tmp_path):
    """The framework applies its own gradients: the next loss tells, before a checkpoint is made."""
    account, _, _, left = train(run_spec(tmp_path, 10, checkpoint_every=1), Diverging(1.0, np.nan))
    assert not account.finished
    assert left.meta["step"] == 2


def test_an_empty_test_set_is_refused_before_the_first_step(tmp_path):
    replica = Softmax()
    with pytest.raises(ValueError, match="the test set is empty"):
        train(run_spec(tmp_path, 3), replica, test=ArraySamples(*images(0)))
    assert not replica.gradients.any()
    with pytest.raises(ValueError, match="the test set is empty"):
        step.evaluate(replica, ArraySamples(*images(0)))


def test_a_checkpoint_of_another_model_is_refused(tmp_path):
    class Wider(Softmax):
        state_variables = ()

    train(run_spec(tmp_path, 3))
    with pytest.raises(ValueError, match="of another model"):
        train(run_spec(tmp_path, 5, resume=str(tmp_path / "checkpoint.npz")), Wider())


# -- parts of a strategy that one device has too ---------------------------------------------------


def test_lars_is_lars_on_one_device_and_survives_a_break(tmp_path):
    plan = {
        "optimizer": OptimizerSettings(2.0, 0.5, 0.01, "lars"),
        "schedule": RateSchedule(),
        "strategy": Strategy.from_text("sgp:optimizer=lars"),
    }
    _, _, _, half = train(run_spec(tmp_path, 4, **plan))
    _, _, _, rest = train(run_spec(tmp_path, 10, resume=str(tmp_path / "checkpoint.npz"), **plan), Softmax(seed=5), 4)
    np.testing.assert_allclose(
        rest.weights, train_on_all_with(plan["optimizer"], 10, [DrawnBatches()]), rtol=1e-4, atol=1e-6
    )
    assert half.slots[MOMENTUM].any()


def test_a_global_batch_grows_on_one_device_and_survives_a_break(tmp_path):
    def batch_after(steps, **changes):
        drawn = DrawnBatches()
        plan = run_spec(tmp_path, steps, strategy=Strategy.from_text("dlion"), training_samples=10_000, **changes)
        SingleDevice(plan, Softmax(), drawn, lambda _: None).train(TEST, never)
        return drawn.batch

    grown = batch_after(60)
    assert grown > BATCH
    assert batch_after(70, resume=str(tmp_path / "checkpoint.npz")) >= grown


def test_a_stream_s_batch_makes_the_rate_grow_with_it(tmp_path):
    rates = []

    class Listening(Softmax):
        def gradient(self, batch, rate=1.0, weight_decay=0.0, adds=False):
            rates.append((len(batch[1]), rate))
            return super().gradient(batch, rate, weight_decay, adds)

    train(run_spec(tmp_path, 2, strategy=Strategy.from_text("scadles"), schedule=RateSchedule(), seed=3), Listening())
    size = sample_streams.drawn_batch("self", 3)
    assert rates == [(size, pytest.approx(0.1 * size / BATCH))] * 2
