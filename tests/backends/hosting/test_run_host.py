"""A host makes exactly the steps that were asked for, whoever joins, stalls, dies or returns."""

import contextlib
import itertools
import json
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from backends.frameworks.layout import Layout, Variable
from backends.frameworks.optimizer import OptimizerSettings
from backends.network import framing
from backends.protocol.events import Dropped, Joined, Refused, Silent
from backends.protocol.frames import Done, Gradient, WorkerEvaluation, WorkerHello
from backends.protocol.json_messages import encode_list
from backends.strategies.message import dense
from backends.training.lr_schedule import RateSchedule
from planner.agents.certificates import Authority
from tests.backends.fakes import DrawnBatches, run_spec, train_on_all
from tests.backends.server_run import ScriptedWorker, ServerRun, WorkerThread, assert_whole, slowly
from tests.running import HANG_S

ROOT = Path(__file__).resolve().parents[3]


def plain_sgd(steps, rate=0.01):
    """The weights that plain steps of SGD give, on the batches that a single worker draws."""
    return train_on_all(steps, [DrawnBatches()], rate=rate)


# -- workers that die, stall and return ------------------------------------------------------------


@pytest.mark.parametrize("taken", [0, 1, 3])
def test_a_worker_that_dies_leaves_its_step_to_another(tmp_path, taken):
    run = ServerRun(run_spec(tmp_path, 10))
    doomed = ScriptedWorker(run, "nano")
    for number in range(taken):
        doomed.receive_order()
        if number < taken - 1:
            doomed.push()
    doomed.leave()
    WorkerThread(run, "tx2").end()
    account = assert_whole(run, 10)
    assert account.workers["nano"].steps == max(0, taken - 1)
    assert run.members(Dropped) == ["nano"]


def test_a_worker_that_dies_in_the_middle_of_a_gradient_changes_nothing(tmp_path):
    run = ServerRun(run_spec(tmp_path, 4, optimizer=OptimizerSettings(0.01, 0.0, 0.0), schedule=RateSchedule()))
    doomed = ScriptedWorker(run, "nano")
    doomed.receive_order()
    message = dense(doomed.replica.gradients).head
    head = json.dumps(encode_list(Gradient(1.0, 0.1, message))).encode()
    whole = doomed.replica.gradients.nbytes + doomed.replica.state.nbytes
    doomed.connection._sock.sendall(framing._HEADER.pack(b"plnr", len(head), whole) + head + b"\x7f" * (whole - 1))
    doomed.leave()
    WorkerThread(run, "tx2").end()
    assert_whole(run, 4)
    np.testing.assert_allclose(run.saved().weights, plain_sgd(4), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("beating", [True, False], ids=["stops", "never began"])
def test_a_worker_whose_heartbeats_stop_is_dropped(tmp_path, beating):
    """As with a stopped process or a pulled cable: its connection stays open."""
    run = ServerRun(run_spec(tmp_path, 10))
    stalled = ScriptedWorker(run, "nano", beating)
    stalled.receive_order()
    stalled.stop_beating()
    run.fall_silent("nano")
    WorkerThread(run, "tx2").end()
    assert_whole(run, 10)
    assert run.members(Silent) == run.members(Dropped) == ["nano"]
    with pytest.raises(framing.WireError):
        stalled.push()
        stalled.receive_order()


PROCESS = """
import json, sys
from backends.network import framing
from backends.network.heartbeat import HeartbeatSender
from backends.server.worker import Worker
from tests.backends.fakes import TEST, Softmax
from tests.backends.server_run import slowly
orders = json.loads(sys.stdin.readline())
tls = framing.context(framing.Identity(*orders["identity"]), False)
data, beats = (framing.connect("127.0.0.1", orders["port"], tls, orders["limit_s"]) for _ in range(2))
heartbeat = HeartbeatSender(beats, orders["limit_s"], lambda _: None)
Worker(data, Softmax(), slowly(), TEST).run()
"""


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
def test_a_process_that_is_stopped_or_killed_is_dropped(tmp_path, number):
    run = ServerRun(run_spec(tmp_path, 10_000))
    orders = {"identity": run.authority.identity("nano"), "port": run.port, "limit_s": run.spec.heartbeat_s}
    with subprocess.Popen([sys.executable, "-c", PROCESS], stdin=subprocess.PIPE, cwd=ROOT) as process:
        process.stdin.write(json.dumps(orders).encode() + b"\n")
        process.stdin.flush()
        run.await_event(Joined)
        process.send_signal(number)
        other = WorkerThread(run, "tx2", batches=slowly())
        if number == signal.SIGSTOP:
            run.fall_silent("nano")
        run.await_event(Dropped)
        run.await_steps(1)  # without any there is no checkpoint
        run.stopping.set()
        process.kill()
    done = run.account().done
    assert other.end().steps + run.host.run_state.members["nano"].steps == done == run.saved().meta["step"]


def test_heartbeats_keep_a_worker_whose_step_takes_long(tmp_path):
    run = ServerRun(run_spec(tmp_path, 1))
    slow = ScriptedWorker(run, "nano")
    slow.receive_order()
    for _ in range(2):
        run.await_heartbeat("nano")
    slow.push()
    slow.receive_order()
    slow.push_scores()
    assert_whole(run, 1)
    assert run.members(Silent) == []


def test_a_worker_that_returns_again_and_again_makes_each_step_once(tmp_path):
    run = ServerRun(run_spec(tmp_path, 60, checkpoint_every=3))
    computed, visits_over = itertools.count(), threading.Event()
    batches = DrawnBatches(before=lambda: next(computed) < 40 or visits_over.wait(HANG_S))
    steady = WorkerThread(run, "tx2", batches=batches)
    for _ in range(10):
        flighty = ScriptedWorker(run, "nano")
        flighty.receive_order()
        flighty.push()
    flighty.leave()
    visits_over.set()
    steady.end()
    assert_whole(run, 60)
    assert len(run.members(Joined)) == 11


def test_what_a_replaced_connection_still_brings_is_not_mixed_with_the_new(tmp_path):
    run = ServerRun(run_spec(tmp_path, 3))
    old = ScriptedWorker(run, "nano")
    old.receive_order()
    new = ScriptedWorker(run, "nano")
    new.receive_order()
    with pytest.raises(framing.WireError):
        old.push(gradient=1e9)
        old.receive_order()
    for _ in range(3):
        new.push()
        new.receive_order()
    new.push_scores()
    assert_whole(run, 3)
    assert np.abs(run.saved().weights).max() < 10


def test_the_last_evaluation_is_done_by_another_if_its_worker_dies(tmp_path):
    run = ServerRun(run_spec(tmp_path, 1))
    doomed = ScriptedWorker(run, "nano")
    doomed.receive_order()
    doomed.push()
    assert isinstance(doomed.receive_order(), WorkerEvaluation)
    other = WorkerThread(run, "tx2")
    doomed.leave()
    other.end()
    assert [one.worker for one in assert_whole(run, 1).evaluations] == ["tx2"]


def test_no_thread_is_left_when_the_run_is_over(tmp_path):
    before = set(threading.enumerate())
    run = ServerRun(run_spec(tmp_path, 5))
    slow = ScriptedWorker(run, "slow")
    slow.receive_order()  # a step that it holds until all others have joined, so that none comes too late
    members = [WorkerThread(run, name) for name in ("nano", "tx2", "pc", "pi")]
    run.await_event(Joined, 1 + len(members))
    slow.leave()
    for member in members:
        member.end()
    assert_whole(run, 5)
    for left in set(threading.enumerate()) - before:  # heartbeats end at their next beat
        left.join(HANG_S)
    assert set(threading.enumerate()) <= before


def test_heartbeats_tell_a_worker_that_the_host_is_gone(tmp_path):
    run = ServerRun(run_spec(tmp_path, 5))
    listener = run.connect("nano")
    lost = []
    told = threading.Event()
    beats = run.heartbeat("tx2", lambda reason: (lost.append(reason), told.set()))
    beats._connection.abort()
    assert told.wait(HANG_S)
    assert len(lost) == 1
    listener.close()
    run.stopping.set()
    run.account()


# -- strangers and strange members -----------------------------------------------------------------


def test_strangers_neither_join_nor_disturb(tmp_path):
    run = ServerRun(run_spec(tmp_path, 6, heartbeat_s=2.0))
    mute = socket.create_connection(("127.0.0.1", run.port))
    for raw in (b"\x16\x03\x01\xff\xff" + b"\0" * 400, b"GET / HTTP/1.1\r\n\r\n", b"plnr" + b"\xff" * 12):
        with socket.create_connection(("127.0.0.1", run.port)) as sock:
            sock.sendall(raw)
    with pytest.raises(framing.WireError):
        run.connect("nano", Authority()).receive(Done)
    run.await_event(Refused, 5)
    mute.close()
    WorkerThread(run, "nano").end()
    assert list(assert_whole(run, 6).workers) == ["nano"]
    assert all(reason.startswith("127.0.0.1: ") for reason in [event.reason for event in run.emitted(Refused)])


@pytest.mark.parametrize(
    "hello",
    [Done(), WorkerHello(None, ()), WorkerHello(Layout((Variable("w", 3, 0, 1),), ()), ()), WorkerHello(7, ())],
    ids=str,
)
def test_a_member_without_a_proper_layout_is_refused(tmp_path, hello):
    run = ServerRun(run_spec(tmp_path, 2))
    run.connect("odd").send(hello)
    run.await_event(Refused)
    WorkerThread(run, "nano").end()
    assert_whole(run, 2)


def test_a_member_with_another_model_is_dropped_with_the_reason(tmp_path):
    run = ServerRun(run_spec(tmp_path, 2))
    worker = ScriptedWorker(run, "nano")
    odd = run.connect("odd")
    odd.send(WorkerHello(Layout((Variable("other", (2,), 0, 2),), ()), ()))
    run.await_event(Dropped)
    (dropped,) = (event for event in run.events if isinstance(event, Dropped))
    assert dropped.reason.startswith("its model is not the run's: the arrays have other names or shapes; ")
    assert dropped.unfit
    worker.leave()
    WorkerThread(run, "nano").end()
    assert_whole(run, 2)


def test_one_that_sends_a_malformed_message_later_may_come_back(tmp_path):
    run = ServerRun(run_spec(tmp_path, 2))
    worker = ScriptedWorker(run, "odd")
    worker.receive_order()
    worker.connection.send(Gradient(1.0, 0.1, dense(np.zeros(1, np.float32)).head))
    run.await_event(Dropped)
    (dropped,) = run.emitted(Dropped)
    assert ": a message of " in dropped.reason and not dropped.unfit
    WorkerThread(run, "nano").end()
    assert_whole(run, 2)


@pytest.mark.parametrize("loss", [None, "low", [1]], ids=str)
def test_an_answer_without_a_loss_drops_its_sender(tmp_path, loss):
    run = ServerRun(run_spec(tmp_path, 2))
    worker = ScriptedWorker(run, "odd")
    worker.receive_order()
    with contextlib.suppress(framing.WireError):  # it is dropped before the gradient has all gone out
        worker.push(loss)
    run.await_event(Dropped)
    WorkerThread(run, "nano").end()
    assert assert_whole(run, 2).workers["odd"].steps == 0
