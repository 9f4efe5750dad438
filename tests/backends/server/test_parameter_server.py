"""A parameter server makes exactly the updates that were asked for, and a run can be resumed."""

import json
import time

import numpy as np
import pytest

from backends.frameworks.base import layout_of
from backends.frameworks.optimizer import OptimizerSettings
from backends.hosting.run_clock import RunClock
from backends.network import framing
from backends.protocol.events import CheckpointWritten, Diverged
from backends.protocol.frames import (
    Finish,
    InitialWeightsRequest,
    RequestedArrays,
    Resumption,
    WorkerHello,
    WorkerStep,
)
from backends.server import parameter_server
from backends.strategies.strategy import Strategy
from backends.training import checkpoint
from backends.training.lr_schedule import RateSchedule
from tests.backends.fakes import Diverging, DrawnBatches, Softmax, arrays_of, run_spec, train_on_all
from tests.backends.server_run import ScriptedWorker, ServerRun, WorkerThread, assert_whole

HELLO = WorkerHello(layout_of(Softmax()), ())


def plain_sgd(steps, rate=0.01):
    """The weights that plain steps of SGD give, on the batches that a single worker draws."""
    return train_on_all(steps, [DrawnBatches()], rate=rate)


def taken(worker):
    order = worker.receive_order()
    return type(order), order.step


# -- an ordinary run -------------------------------------------------------------------------------


def test_one_worker_through_the_server_is_plain_sgd(tmp_path):
    run = ServerRun(run_spec(tmp_path, 12, optimizer=OptimizerSettings(0.01, 0.0, 0.0), schedule=RateSchedule()))
    WorkerThread(run, "nano").end()
    assert_whole(run, 12)
    np.testing.assert_allclose(run.saved().weights, plain_sgd(12), rtol=1e-5, atol=1e-6)


def test_workers_are_told_the_rate_of_their_step_and_the_decay(tmp_path):
    run = ServerRun(
        run_spec(tmp_path, 4, optimizer=OptimizerSettings(0.2, 0.9, 0.01), schedule=RateSchedule("step", 4))
    )
    worker = ScriptedWorker(run, "nano")
    told = []
    for _ in range(4):
        told.append(worker.receive_order())
        worker.push()
    assert [order.gradient.rate for order in told] == pytest.approx([0.2, 0.2, 0.02, 0.002])
    assert {order.gradient.weight_decay for order in told} == {0.01}
    worker.leave()


def test_every_byte_is_counted_once_at_both_ends(tmp_path):
    run = ServerRun(run_spec(tmp_path, 15, evaluate_every=4))
    members = {name: WorkerThread(run, name) for name in ("nano", "tx2")}
    for member in members.values():
        member.end()
    counted = {name: one.bytes for name, one in assert_whole(run, 15).workers.items()}
    assert counted == {name: member.bytes for name, member in members.items()}


def test_checkpoints_are_taken_at_every_multiple_and_at_the_end(tmp_path):
    run = ServerRun(run_spec(tmp_path, 6, checkpoint_every=2))
    worker = ScriptedWorker(run, "nano")
    for step in range(6):
        assert taken(worker) == (WorkerStep, step)
        worker.push()
        if step in (1, 3):
            run.await_event(CheckpointWritten, (step + 1) // 2)
    worker.receive_order()
    worker.push_scores()
    assert_whole(run, 6)
    assert [event.step for event in run.events if isinstance(event, CheckpointWritten)] == [2, 4, 6]


def test_checkpoints_go_by_the_clock_whatever_the_workers_do(tmp_path):
    run, now_s = ServerRun(run_spec(tmp_path, 6, checkpoint_every_s=60.0)), [0.0]
    run.host.run_state.clock = RunClock(lambda: now_s[0])
    worker = ScriptedWorker(run, "nano")
    for _ in range(2):
        worker.receive_order()
        worker.push()
    worker.receive_order()  # and it hangs
    now_s[0] = 61.0
    run.await_event(CheckpointWritten)
    assert checkpoint.peek(run.spec.checkpoints.path)["step"] == 2
    run.stopping.set()
    worker.leave()
    assert run.saved().meta["step"] == 2


def test_a_host_that_fails_saves_what_has_been_trained(tmp_path):
    run = ServerRun(run_spec(tmp_path, 6))
    worker = ScriptedWorker(run, "nano")
    for _ in range(2):
        worker.receive_order()
        worker.push()
    worker.receive_order()

    def fail():
        raise ArithmeticError("a faulty host")

    run.host.silent_members.drop = fail
    run.await_event(CheckpointWritten)
    assert checkpoint.peek(run.spec.checkpoints.path)["step"] == 2
    worker.leave()


def test_staleness_counts_the_updates_that_came_between(tmp_path):
    run = ServerRun(run_spec(tmp_path, 5))
    slow, quick = ScriptedWorker(run, "slow"), ScriptedWorker(run, "quick")
    slow.receive_order()
    for _ in range(3):
        quick.receive_order()
        quick.push()
    quick.receive_order()
    slow.push()
    run.stopping.set()
    slow.receive_order()
    quick.push()
    assert isinstance(quick.receive_order(), Finish)
    workers = run.account().workers
    assert workers["slow"].staleness == 3.0
    assert workers["quick"].staleness == 0.25


def test_a_worker_that_joins_takes_the_run_s_state_for_its_own(tmp_path):
    run = ServerRun(run_spec(tmp_path, 9))
    first = ScriptedWorker(run, "nano")
    first.receive_order()
    first.replica.state[:] = (3.0, 5.0)
    first.push()
    first.receive_order()
    np.testing.assert_array_equal(ScriptedWorker(run, "tx2").replica.state, (3.0, 5.0))
    run.stopping.set()
    run.account()


# -- the initial weights ---------------------------------------------------------------------------


def test_when_the_first_dies_before_it_has_given_the_weights_the_next_gives_them(tmp_path):
    run = ServerRun(run_spec(tmp_path, 4))
    first = run.connect("nano")
    first.send(HELLO)
    first.receive(InitialWeightsRequest)
    second = WorkerThread(run, "tx2")
    first.close()
    assert second.end().steps == 4
    assert_whole(run, 4)


def test_the_worker_beside_the_server_gives_the_weights_though_others_have_built_first(tmp_path):
    """They cross no network: over a slow link, all would wait for them for minutes."""
    run = ServerRun(run_spec(tmp_path, 4, host="tx2"))
    far = run.connect("nano")
    far.send(HELLO)
    near = run.connect("tx2")
    near.send(HELLO)
    near.receive(InitialWeightsRequest)
    replica = Softmax()
    near.send(RequestedArrays(), framing.as_bytes((replica.weights, replica.state)))
    far.receive(Resumption, payload=lambda _: framing.as_bytes((replica.state,)))
    for connection in (near, far):
        connection.close()
    run.stopping.set()
    assert run.account().done == 0


def test_a_worker_beside_the_server_that_does_not_come_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(parameter_server, "LOCAL_WORKER_WAIT_S", 0.3)
    run = ServerRun(run_spec(tmp_path, 4, host="tx2"))
    began = time.monotonic()
    assert WorkerThread(run, "nano").end().steps == 4
    assert time.monotonic() - began > 0.3
    assert_whole(run, 4)


def test_a_run_can_be_stopped_while_others_wait_for_the_worker_beside_the_server(tmp_path):
    run = ServerRun(run_spec(tmp_path, 4, host="tx2"))
    far = run.connect("nano")
    far.send(HELLO)
    run.stopping.set()
    assert run.account().done == 0
    far.close()


# -- stopping and going on -------------------------------------------------------------------------


def test_asked_to_stop_it_leaves_a_checkpoint_to_go_on_from(tmp_path):
    run = ServerRun(run_spec(tmp_path, 10))
    worker = ScriptedWorker(run, "nano")
    for _ in range(3):
        worker.receive_order()
        worker.push()
    worker.receive_order()
    run.stopping.set()
    account = run.account()
    assert (account.finished, account.reason, account.done) == (False, "stopped", 3)
    assert run.saved().meta["step"] == 3


@pytest.mark.parametrize("optimizer", ["sgd", "lars", "adam", "adamw"])
@pytest.mark.parametrize("kind", ["cosine", "constant"])
def test_a_resumed_run_comes_to_the_same_as_one_without_a_break(tmp_path, kind, optimizer):
    optimizer = OptimizerSettings(0.1, 0.9, 0.001, optimizer)

    def run(folder, steps, skip=0, **changes):
        """Also gives the first part the schedule of the whole."""
        folder.mkdir()
        changes["evaluate_every"] = 6
        run = ServerRun(run_spec(folder, steps, schedule=RateSchedule(kind, 20, 2), optimizer=optimizer, **changes))
        WorkerThread(run, "nano", Softmax(seed=skip), DrawnBatches(skip)).end()
        return assert_whole(run, steps, before=skip), run.saved()

    _, whole = run(tmp_path / "whole", 20)
    _, half = run(tmp_path / "half", 9)
    account, rest = run(tmp_path / "rest", 20, 9, resume=str(tmp_path / "half" / "checkpoint.npz"))
    assert half.meta["step"] == 9
    for part, values in arrays_of(whole).items():
        np.testing.assert_allclose(arrays_of(rest)[part], values, rtol=1e-4, atol=1e-6)
    assert [one.step for one in account.evaluations] == [12, 18, 20]
    assert [one["step"] for one in rest.meta["evaluations"]] == [6, 9, 12, 18, 20]


def test_a_checkpoint_past_the_last_step_or_damaged_is_refused_before_anything_starts(tmp_path):
    first = ServerRun(run_spec(tmp_path, 4))
    WorkerThread(first, "nano").end()
    first.account()
    path = first.spec.checkpoints.path
    with pytest.raises(ValueError, match="4 steps are done already"):
        ServerRun(run_spec(tmp_path, 3, resume=path))
    with open(path, "r+b") as stream:
        stream.truncate(100)
    with pytest.raises(ValueError, match="damaged"):
        ServerRun(run_spec(tmp_path, 8, resume=path))


# -- training that diverges ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "replica",
    [Diverging(loss=np.nan), Diverging(loss=np.inf), Diverging(gradient=np.nan), Diverging(gradient=-np.inf)],
    ids=["nan loss", "infinite loss", "nan gradient", "infinite gradient"],
)
def test_a_run_that_diverges_ends_says_so_and_keeps_its_last_good_checkpoint(tmp_path, replica):
    run = ServerRun(run_spec(tmp_path, 50, checkpoint_every=1))
    WorkerThread(run, "nano", replica).end()
    account = run.account()
    assert (account.finished, account.done) == (False, 2)
    assert "diverged" in account.reason
    assert "nano" in account.reason
    assert run.members(Diverged) == ["nano"]
    assert run.saved().meta["step"] in (1, 2)
    assert np.isfinite(run.saved().weights).all()
    for event in [*run.events, account]:
        json.dumps(event, allow_nan=False)


@pytest.mark.parametrize(("sync", "waits"), [("asynchronous", False), ("bounded", False), ("synchronous", True)])
def test_a_run_that_diverges_names_what_would_help(tmp_path, sync, waits):
    run = ServerRun(
        run_spec(
            tmp_path,
            50,
            optimizer=OptimizerSettings(0.03, 0.7, 0.0),
            strategy=Strategy.from_text("parameter-server:sync=" + sync),
            members=3,
        )
    )
    WorkerThread(run, "nano", Diverging(loss=np.nan)).end()
    reason = run.account().reason
    assert "; lower the learning rate of 0.03" in reason
    assert ("let workers wait for one another (sync=synchronous)" in reason) != waits
    assert "\n" not in reason


def test_an_evaluation_that_is_not_finite_is_divergence_too(tmp_path):
    run = ServerRun(run_spec(tmp_path, 1))
    worker = ScriptedWorker(run, "nano")
    worker.receive_order()
    worker.push()
    worker.receive_order()
    worker.push_scores(float("nan"))
    assert isinstance(worker.receive_order(), Finish)
    assert "evaluation at step 1" in run.account().reason
