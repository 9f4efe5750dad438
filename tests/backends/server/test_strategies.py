"""On a real server, every compressor and sync policy gives the right weights, resumed or not."""

import itertools
import threading
import time

import numpy as np
import pytest

from backends.frameworks.optimizer import OptimizerSettings
from backends.jobs.job import ACCURACY
from backends.protocol.events import Dropped, Joined, Replaced
from backends.protocol.frames import WorkerEvaluation, WorkerStep
from backends.strategies import sample_streams
from backends.strategies.compressors.registry import COMPRESSORS, CompressorSpec
from backends.strategies.message import dense, whole
from backends.strategies.strategy import Strategy
from backends.strategies.synchronisation import SYNC_POLICIES
from backends.training.lr_schedule import RateSchedule
from tests.backends.fakes import BATCH, DrawnBatches, Softmax, run_spec, train_on_all, train_on_all_with
from tests.backends.replicas import small_replica
from tests.backends.server_run import ScriptedWorker, ServerRun, WorkerThread
from tests.installed import EACH, MIXED
from tests.running import HANG_S

NAMES = ("nano", "pc", "tx2")
MOMENTUM = 0.5


def plain(folder, steps, sync="asynchronous", momentum=0.0, **changes):
    values = {
        "optimizer": OptimizerSettings(0.1, momentum, 0.0),
        "schedule": RateSchedule(),
        "strategy": Strategy.from_text("parameter-server:sync=" + sync),
        **changes,
    }
    return run_spec(folder, steps, **values)


def with_parts(folder, steps, parts, **changes):
    """A run with other parts than the parameter server's usual."""
    chosen = Strategy.from_text("parameter-server:" + parts)
    return plain(folder, steps, strategy=chosen, **changes)


def in_step(run, count, frameworks=("numpy",)):
    """Workers that join one after the other and begin when all are there."""
    together, workers = threading.Event(), []
    replicas = [small_replica(name) for name in itertools.islice(itertools.cycle(frameworks), count)]
    for seed, (name, replica) in enumerate(zip(NAMES, replicas, strict=False)):
        batches = DrawnBatches(seed=seed, before=together.wait)
        workers.append(WorkerThread(run, name, replica, batches))
        run.await_event(Joined, seed + 1)
    together.set()
    for each in workers:
        each.end()
    return workers


@pytest.mark.parametrize("momentum", [0.0, MOMENTUM])
def test_synchronous_workers_do_what_one_process_does_with_all_their_batches(tmp_path, momentum):
    expect_one_process(tmp_path, ("numpy",), momentum)


@pytest.mark.parametrize("frameworks", [*EACH, MIXED])
def test_so_do_those_of_every_framework(tmp_path, frameworks):
    expect_one_process(tmp_path, frameworks, MOMENTUM)


def expect_one_process(folder, frameworks, momentum):
    run = ServerRun(plain(folder, 30, "synchronous", momentum))
    in_step(run, 3, frameworks)
    assert {each.steps for each in run.account().workers.values()} == {10}
    together = train_on_all(
        10, [DrawnBatches(seed=seed) for seed in range(3)], momentum, replica=small_replica(frameworks[0])
    )
    np.testing.assert_allclose(run.saved().weights, together, rtol=1e-4, atol=1e-5)


def test_a_synchronous_round_is_applied_when_all_are_there(tmp_path):
    run = ServerRun(plain(tmp_path, 6, "synchronous"))
    first, second = ScriptedWorker(run, "nano"), ScriptedWorker(run, "pc")
    for worker in (first, second):
        assert worker.receive_order().step in (0, 1)
    first.push(gradient=1.0)
    before = first.replica.weights.copy()
    second.push(gradient=3.0)
    assert isinstance(first.receive_order(), WorkerStep) and isinstance(second.receive_order(), WorkerStep)
    np.testing.assert_allclose(first.replica.weights, before - 2.0, rtol=1e-5)
    np.testing.assert_array_equal(first.replica.weights, second.replica.weights)
    second.leave()
    for _ in range(4):
        first.push()
        order = first.receive_order()
    assert isinstance(order, WorkerEvaluation)
    first.push_scores()
    account = run.account()
    assert account.finished
    assert account.workers["nano"].staleness == 0


def test_nobody_gets_further_ahead_than_the_bound(tmp_path):
    run = ServerRun(plain(tmp_path, 60, "bounded:staleness=2"))
    slow, quick = ScriptedWorker(run, "slow"), ScriptedWorker(run, "quick")
    slow.receive_order()
    for _ in range(3):
        quick.receive_order()
        quick.push()
    run.await_steps(3)
    assert not run.host.run_state._may_begin("quick")
    slow.push()
    assert isinstance(quick.receive_order(), WorkerStep)
    run.stopping.set()
    run.account()


def test_a_backup_worker_is_not_waited_for_and_what_it_brings_counts_later(tmp_path):
    run = ServerRun(plain(tmp_path, 30, "backup:backups=1,staleness=5"))
    slow, quick, other = (ScriptedWorker(run, name) for name in ("slow", "quick", "other"))
    for worker in (slow, quick, other):
        worker.receive_order()
    for _ in range(2):
        quick.push()
        other.push()
        quick.receive_order()
        other.receive_order()
    slow.push(gradient=1.0)
    before = quick.replica.weights.copy()
    quick.push()
    quick.receive_order()
    np.testing.assert_allclose(quick.replica.weights, before - 0.5, rtol=1e-5)
    run.stopping.set()
    run.account()


@pytest.mark.parametrize("text", COMPRESSORS)
def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(tmp_path, text):
    """One worker, so that there is one order of events."""

    def train(folder, steps, drawn, resume=None):
        folder.mkdir(exist_ok=True)
        momentum = 0.0 if CompressorSpec.from_text(text).keeps_residual else MOMENTUM
        changes = {"momentum": momentum, "resume": resume, "evaluate_every": 100}
        run = ServerRun(with_parts(folder, steps, "compressor=" + text, **changes))
        replica = Softmax()
        correction = MOMENTUM if CompressorSpec.from_text(text).keeps_residual else 0.0
        member = WorkerThread(
            run, "nano", replica, drawn, compressor=CompressorSpec.from_text(text).build(replica.variables, correction)
        )
        member.end()
        assert run.account().finished
        return run.saved()

    whole = train(tmp_path / "whole", 12, DrawnBatches())
    half = train(tmp_path / "half", 5, DrawnBatches())
    rest = train(tmp_path / "rest", 12, DrawnBatches(skip=5), str(tmp_path / "half" / "checkpoint.npz"))
    assert bool(half.member_states) == (CompressorSpec.from_text(text).keeps_residual or text == "adaptive")
    np.testing.assert_array_equal(rest.weights, whole.weights)
    for one, other in zip(rest.member_states.get("nano", ()), whole.member_states.get("nano", ()), strict=True):
        np.testing.assert_array_equal(one, other)


def test_one_that_comes_back_is_given_all_layers_and_not_only_those_that_changed(tmp_path):
    run = ServerRun(plain(tmp_path, 100))
    first, other = ScriptedWorker(run, "nano"), ScriptedWorker(run, "pc")
    first.receive_order()
    again = ScriptedWorker(run, "nano")
    run.await_event(Replaced)
    again.replica.weights[:] = 99
    again.receive_order()
    other.receive_order()
    np.testing.assert_array_equal(again.replica.weights, other.replica.weights)
    run.stopping.set()
    run.account()


# -- batches, merging and optimizers that peers have too -------------------------------------------


@pytest.mark.parametrize("momentum", [0.0, MOMENTUM])
@pytest.mark.parametrize("merge", ["weighted", "samples", "rates"])
def test_batches_of_different_sizes_count_by_their_samples(tmp_path, merge, momentum):
    """As in one process with all of them; by rates, the learning rate grows with their number."""
    parts = f"sync=synchronous,batching=stream,aggregation={merge}"
    run = ServerRun(with_parts(tmp_path, 24, parts, momentum=momentum, members=3, seed=4))
    in_step(run, 3)
    sizes = [sample_streams.drawn_batch(name, 4) for name in NAMES[:3]]
    assert len(set(sizes)) > 1
    drawn = [DrawnBatches(seed=seed) for seed in range(3)]
    for each, size in zip(drawn, sizes, strict=True):
        each.batch = size
    rate = 0.1 * sum(sizes) / (3 * BATCH) if merge == "rates" else 0.1
    np.testing.assert_allclose(run.saved().weights, train_on_all(8, drawn, momentum, rate), rtol=1e-4, atol=1e-5)


def test_a_worker_that_takes_longer_gets_smaller_batches_and_all_of_them_grow(tmp_path):
    parts = "sync=synchronous,batching=dynamic,aggregation=weighted"
    run = ServerRun(with_parts(tmp_path, 1000, parts, members=2, training_samples=10_000))
    slow, quick = ScriptedWorker(run, "nano"), ScriptedWorker(run, "pc")
    for _ in range(70):
        batches = [worker.receive_order().batch for worker in (slow, quick)]
        slow.push(seconds=0.03 * batches[0])
        quick.push(seconds=0.01 * batches[1])
    assert batches[1] == pytest.approx(3 * batches[0], abs=2)
    assert sum(batches) > 2 * BATCH
    run.stopping.set()
    run.account()


@pytest.mark.parametrize(("kind", "rate"), [("lars", 2.0), ("adam", 0.02), ("adamw", 0.02)])
def test_the_server_updates_with_the_mean_of_what_all_have_sent(tmp_path, kind, rate):
    optimizer = OptimizerSettings(rate, 0.5, 0.01, kind)
    parts = "sync=synchronous,optimizer=" + kind
    run = ServerRun(with_parts(tmp_path, 16, parts, optimizer=optimizer))
    in_step(run, 2)
    together = train_on_all_with(optimizer, 8, [DrawnBatches(seed=seed) for seed in range(2)])
    np.testing.assert_allclose(run.saved().weights, together, rtol=1e-4, atol=1e-5)


def test_what_adds_up_differences_follows_the_schedule_of_the_rate(tmp_path):
    """The sum of what was sent would otherwise keep the rates of former steps."""
    falling = RateSchedule("step", 12)

    def train(folder, text):
        folder.mkdir()
        run = ServerRun(with_parts(folder, 12, "compressor=" + text, schedule=falling))
        compressor = CompressorSpec.from_text(text).build(Softmax().variables)
        WorkerThread(run, "nano", compressor=compressor).end()
        assert run.account().finished
        return run.saved().weights

    dense, differences = (train(tmp_path / text[:4], text) for text in ("dense", "ef21:share=1"))
    np.testing.assert_allclose(differences, dense, rtol=1e-4, atol=1e-6)


def test_a_worker_that_comes_back_and_its_server_begin_with_the_same_sum_of_differences(tmp_path, monkeypatch):
    run = ServerRun(with_parts(tmp_path, 10_000_000, "compressor=ef21:share=0.1"))
    estimates, last, was_back = run.host.run_state._estimates, {}, threading.Event()
    completed = estimates.completed

    def noted(worker, change):
        last[worker] = whole(completed(worker, change)).copy()
        if worker == "nano" and any(isinstance(event, Dropped) for event in run.events):
            was_back.set()
        return dense(last[worker].copy())

    monkeypatch.setattr(estimates, "completed", noted)

    def joined(name):
        compressor = CompressorSpec.from_text("ef21:share=0.1").build(Softmax().variables)
        return WorkerThread(run, name, batches=slowly(0), compressor=compressor), compressor

    (stays, _), (leaves, _) = joined("pc"), joined("nano")
    run.await_steps(40)
    leaves.cut()
    run.await_event(Dropped)
    returns, compressor = joined("nano")
    assert was_back.wait(HANG_S)
    run.stopping.set()
    stays.end()
    returns.end()
    run.account()
    (sent,) = compressor.state()
    np.testing.assert_array_equal(last["nano"], sent)


@pytest.mark.parametrize("gate", [*SYNC_POLICIES, "backup:backups=2,staleness=1"])
def test_whoever_dies_or_comes_while_training_every_step_is_made_once(tmp_path, gate):
    run = ServerRun(plain(tmp_path, 1500, gate, evaluate_every=10_000))
    first, doomed = (WorkerThread(run, name, batches=slowly(seed)) for seed, name in enumerate(NAMES[:2]))
    run.await_steps(60)
    doomed.cut()
    run.await_event(Dropped)
    late, again = WorkerThread(run, "tx2", batches=slowly(2)), WorkerThread(run, "pc", batches=slowly(1))
    for member in (first, late, again):
        member.end()
    account = run.account()
    assert account.finished and account.done == 1500
    assert sum(each.steps for each in account.workers.values()) == 1500
    assert account.workers["tx2"].steps > 10
    assert account.evaluations[-1].metrics[ACCURACY] > 0.8


def slowly(seed):
    """Batches that leave others the time to come."""
    return DrawnBatches(seed=seed, before=lambda: time.sleep(0.002))
