"""Workers that make rounds of local steps around a real server."""

import threading

import numpy as np
import pytest

from backends.frameworks.optimizer import OptimizerSettings
from backends.protocol.events import Joined
from backends.protocol.frames import LocalRound
from backends.strategies.strategy import Strategy
from backends.training.local_round import LocalUpdates
from backends.training.lr_schedule import RateSchedule
from tests.backends.fakes import BATCH, DrawnBatches, Softmax, run_spec, train_on_all
from tests.backends.replicas import small_replica
from tests.backends.server_run import ScriptedWorker, ServerRun, WorkerThread, assert_whole
from tests.installed import EACH, MIXED

NAMES = ("nano", "pc", "tx2")
ROUNDS = "parameter-server:sync=synchronous,aggregation=samples,local=steps:every=4"


def spec(folder, strategy, steps, **changes):
    values = {"optimizer": OptimizerSettings(0.1, 0.5, 0.0), "schedule": RateSchedule(), **changes}
    return run_spec(folder, steps, strategy=Strategy.from_text(strategy), **values)


def in_step(run, count, replicas=None, skip=0):
    """Workers that join one after the other and begin when all are there."""
    together, workers = threading.Event(), []
    for seed, name in enumerate(NAMES[:count]):
        batches = DrawnBatches(skip, seed=seed, before=together.wait)
        workers.append(WorkerThread(run, name, replicas[seed] if replicas else None, batches))
        run.await_event(Joined, seed + 1)
    together.set()
    for each in workers:
        each.end()
    return workers


def rounds_by_hand(rounds, count, every, outer):
    """As ``test_local_updates`` of peers; outer: (rate, momentum)."""
    replicas = [Softmax() for _ in range(count)]
    made = [
        LocalUpdates(replica, DrawnBatches(seed=i), OptimizerSettings(0.1, 0.5), False)
        for i, replica in enumerate(replicas)
    ]
    weights, m = Softmax().weights, np.zeros_like(Softmax().weights)
    for _ in range(rounds):
        changes = []
        for replica, local in zip(replicas, made, strict=True):
            replica.weights[:] = weights
            local.make(LocalRound(every), 0.1, BATCH)
            changes.append(replica.gradients.copy())
        change = sum(changes) / count
        m = outer[1] * m + change
        weights = weights - outer[0] * (change + outer[1] * m)
    return weights


@pytest.mark.parametrize("outer", [(1.0, 0.0), (0.8, 0.4)])
def test_a_synchronous_round_is_the_outer_step_of_the_mean_change(tmp_path, outer):
    text = ROUNDS + (",outer=nesterov:gain={},momentum={}".format(*outer) if outer[1] else "")
    run = ServerRun(spec(tmp_path, text, 48))
    in_step(run, 3)
    assert_whole(run, 48)
    np.testing.assert_allclose(run.saved().weights, rounds_by_hand(4, 3, 4, outer), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("frameworks", [*EACH, MIXED])
def test_frameworks_mix_in_rounds_too(tmp_path, frameworks):
    run = ServerRun(spec(tmp_path, ROUNDS, 24))
    replicas = [small_replica(frameworks[i % len(frameworks)]) for i in range(2)]
    assert {len(workers.replica.weights) for workers in in_step(run, 2, replicas)} == {replicas[0].weights.size}
    assert_whole(run, 24)


def test_a_lone_worker_that_exchanges_every_step_is_plain_sgd(tmp_path):
    run = ServerRun(spec(tmp_path, "parameter-server:aggregation=samples,local=steps:every=1", 10))
    in_step(run, 1)
    expected = train_on_all(10, [DrawnBatches(seed=0)], 0.5)
    np.testing.assert_allclose(run.saved().weights, expected, rtol=1e-5, atol=1e-6)


def test_a_worker_that_dies_in_a_round_loses_that_round_and_another_makes_it(tmp_path):
    run = ServerRun(spec(tmp_path, "async-diloco:local=steps:every=5", 40))
    dying = ScriptedWorker(run, "nano")
    order = dying.receive_order()
    assert order.local == LocalRound(5)
    dying.leave()
    worker = WorkerThread(run, "pc")
    worker.end()
    assert_whole(run, 40)


def test_a_run_that_was_stopped_goes_on_with_the_same_bits(tmp_path):
    text = ROUNDS + ",outer=nesterov:momentum=0.4"
    whole = ServerRun(spec(tmp_path, text, 48))
    in_step(whole, 2)
    expected = whole.saved().weights
    (tmp_path / "half").mkdir()
    half = ServerRun(spec(tmp_path / "half", text, 24))
    in_step(half, 2)
    path = half.spec.checkpoints.path
    half.account()
    rest = ServerRun(spec(tmp_path / "half", text, 48, resume=path))
    in_step(rest, 2, skip=12)
    np.testing.assert_array_equal(rest.saved().weights, expected)
