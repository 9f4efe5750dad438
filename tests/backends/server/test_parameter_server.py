"""A run on the parameter server: exactly the asked-for updates, whoever comes, stalls, dies or returns."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from backends.frameworks.base import OptimizerSettings
from backends.network import framing
from backends.server import parameter_server, worker
from backends.strategies.strategy import Strategy
from backends.training.layout import layout_of
from backends.training.lr_schedule import RateSchedule
from planner.agents.certificates import Authority
from tests.backends.fakes import TEST, Diverging, Drawn, Member, Puppet, Running, Softmax, union, work

ROOT = Path(__file__).resolve().parents[2]
FAST = 0.6  # seconds without a heartbeat after which a worker is cut off, here


def plain_sgd(steps, rate=0.01):
    """The weights that plain steps of SGD give, on the batches that a single worker draws."""
    return union(steps, [Drawn()], rate=rate)


def assert_whole(running, steps, before=0):
    """Exactly ``steps`` updates were made and counted, ``before`` in an earlier run; the checkpoint is of the last."""
    account = running.account()
    assert account["finished"]
    assert account["reason"] is None
    assert account["done"] == account["total"] == steps
    assert sum(one["steps"] for one in account["workers"].values()) == steps - before
    assert running.saved().meta["step"] == running.saved().meta["evaluations"][-1]["step"] == steps
    return account


def slowly():
    """Batches that take their time, so that others get in between."""
    return Drawn(before=lambda: time.sleep(0.01))


def taken(puppet):
    ticket = puppet.take()
    return ticket["kind"], ticket["step"]


# -- an ordinary run -----------------------------------------------------------------------------------


def test_one_worker_through_the_server_is_plain_sgd(tmp_path):
    running = Running(work(tmp_path, 12, optimiser=OptimizerSettings(0.01, 0.0, 0.0), schedule=RateSchedule()))
    Member(running, "nano").end()
    assert_whole(running, 12)
    np.testing.assert_allclose(running.saved().weights, plain_sgd(12), rtol=1e-5, atol=1e-6)


def test_workers_are_told_the_rate_of_their_step_and_the_decay(tmp_path):
    running = Running(work(tmp_path, 4, optimiser=OptimizerSettings(0.2, 0.9, 0.01), schedule=RateSchedule("step", 4)))
    puppet = Puppet(running, "nano")
    told = []
    for _ in range(4):
        told.append(puppet.take())
        puppet.give()
    assert [ticket["rate"] for ticket in told] == pytest.approx([0.2, 0.2, 0.02, 0.002])
    assert {ticket["weight_decay"] for ticket in told} == {0.01}
    puppet.leave()


def test_several_workers_share_the_steps_and_the_model_learns(tmp_path):
    running = Running(work(tmp_path, 120, schedule=RateSchedule(), checkpoint_every=25, evaluate_every=40))
    members = [Member(running, name, data=Drawn(seed=seed)) for seed, name in enumerate(("nano", "tx2", "pc"))]
    steps = sum(member.end().steps for member in members)
    account = assert_whole(running, 120)
    assert steps == 120
    assert account["evaluations"][-1]["accuracy"] > 0.9
    assert len(running.named("joined")) == 3
    assert running.named("dropped") == running.named("silent") == []
    for event in running.events:
        json.dumps(event, allow_nan=False)


def test_every_byte_is_counted_once_at_both_ends(tmp_path):
    running = Running(work(tmp_path, 15, evaluate_every=4))
    members = {name: Member(running, name) for name in ("nano", "tx2")}
    for member in members.values():
        member.end()
    counted = {name: one["bytes"] for name, one in assert_whole(running, 15)["workers"].items()}
    assert counted == {name: member.bytes for name, member in members.items()}


def test_checkpoints_are_taken_at_every_multiple_and_at_the_end(tmp_path):
    running = Running(work(tmp_path, 6, checkpoint_every=2))
    puppet = Puppet(running, "nano")
    for step in range(6):
        assert taken(puppet) == ("step", step)
        puppet.give()
        if step in (1, 3):
            running.await_event("checkpoint", (step + 1) // 2)
    puppet.take()
    puppet.connection.send({"loss": 1.0, "accuracy": 0.5, "seconds": 0.1})
    assert_whole(running, 6)
    assert [event["step"] for event in running.events if "checkpoint" in event] == [2, 4, 6]


def test_staleness_counts_the_updates_that_came_between(tmp_path):
    running = Running(work(tmp_path, 5))
    slow, quick = Puppet(running, "slow"), Puppet(running, "quick")
    slow.take()
    for _ in range(3):
        quick.take()
        quick.give()
    quick.take()
    slow.give()
    running.stopping.set()
    slow.take()
    quick.give()
    assert quick.take()["kind"] == "finish"
    workers = running.account()["workers"]
    assert workers["slow"]["staleness"] == 3.0
    assert workers["quick"]["staleness"] == 0.25


def test_a_worker_that_joins_takes_the_run_s_state_for_its_own(tmp_path):
    running = Running(work(tmp_path, 9))
    first = Puppet(running, "nano")
    first.take()
    first.replica.state[:] = (3.0, 5.0)
    first.give()
    first.take()
    np.testing.assert_array_equal(Puppet(running, "tx2").replica.state, (3.0, 5.0))
    running.stopping.set()
    running.account()


# -- workers that die, stall and return ----------------------------------------------------------------


@pytest.mark.parametrize("taken", [0, 1, 3])
def test_a_worker_that_dies_leaves_its_step_to_another(tmp_path, taken):
    running = Running(work(tmp_path, 10))
    doomed = Puppet(running, "nano")
    for number in range(taken):
        doomed.take()
        if number < taken - 1:
            doomed.give()
    doomed.leave()
    Member(running, "tx2").end()
    account = assert_whole(running, 10)
    assert account["workers"]["nano"]["steps"] == max(0, taken - 1)
    assert running.named("dropped") == ["nano"]


def test_a_worker_that_dies_in_the_middle_of_a_gradient_changes_nothing(tmp_path):
    running = Running(work(tmp_path, 4, optimiser=OptimizerSettings(0.01, 0.0, 0.0), schedule=RateSchedule()))
    doomed = Puppet(running, "nano")
    doomed.take()
    whole = doomed.replica.gradients.nbytes + doomed.replica.state.nbytes
    doomed.connection._sock.sendall(framing._HEADER.pack(b"plnr", 11, whole) + b'{"loss": 1}' + b"\x7f" * (whole - 1))
    doomed.leave()
    Member(running, "tx2").end()
    assert_whole(running, 4)
    np.testing.assert_allclose(running.saved().weights, plain_sgd(4), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("beating", [True, False], ids=["stops", "never began"])
def test_a_worker_whose_heart_stops_is_cut_off_within_the_limit(tmp_path, beating):
    """As with a stopped process or a pulled cable: its connection stays open, and nothing comes."""
    running = Running(work(tmp_path, 10, heartbeat_s=FAST))
    stalled = Puppet(running, "nano", beating)
    stalled.take()
    stalled.stop_beating()
    began = time.monotonic()
    Member(running, "tx2").end()
    assert_whole(running, 10)
    assert time.monotonic() - began < 2 * FAST + 1
    assert running.named("silent") == running.named("dropped") == ["nano"]
    with pytest.raises(framing.WireError):
        stalled.give()
        stalled.take()


PROCESS = """
import json, sys
from backends import server, wire, worker
from tests.backends.fakes import TEST, Softmax
from tests.backends.test_server import slowly
orders = json.loads(sys.stdin.readline())
tls = wire.context(wire.Identity(*orders["identity"]), False)
data, beats = (wire.connect("127.0.0.1", orders["port"], tls, orders["limit_s"]) for _ in range(2))
pulse = worker.Pulse(beats, orders["limit_s"], lambda _: None)
worker.run(data, Softmax(), slowly(), TEST)
"""


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
def test_a_process_that_is_stopped_or_killed_is_done_without(tmp_path, number):
    running = Running(work(tmp_path, 10_000, heartbeat_s=FAST))
    orders = {"identity": running.authority.identity("nano"), "port": running.port, "limit_s": FAST}
    with subprocess.Popen([sys.executable, "-c", PROCESS], stdin=subprocess.PIPE, cwd=ROOT) as process:
        process.stdin.write(json.dumps(orders).encode() + b"\n")
        process.stdin.flush()
        running.await_event("joined")
        process.send_signal(number)
        sent = time.monotonic()
        other = Member(running, "tx2", data=slowly())
        running.await_event("dropped")
        assert time.monotonic() - sent < (2 * FAST + 0.5 if number == signal.SIGSTOP else FAST)
        running.stopping.set()
        process.kill()
    done = running.account()["done"]
    assert other.end().steps + running.host.peers["nano"].steps == done == running.saved().meta["step"]


def test_a_beating_worker_may_take_longer_than_the_limit_for_a_step(tmp_path):
    running = Running(work(tmp_path, 1, heartbeat_s=FAST))
    slow = Puppet(running, "nano")
    slow.take()
    time.sleep(2 * FAST)
    slow.give()
    slow.take()
    slow.connection.send({"loss": 1.0, "accuracy": 0.5, "seconds": 0.1})
    assert_whole(running, 1)
    assert running.named("silent") == []


def test_one_that_waits_for_others_and_falls_silent_is_dropped_at_once(tmp_path):
    running = Running(work(tmp_path, 1, heartbeat_s=FAST))
    busy = Puppet(running, "nano")
    busy.take()
    waiting = Puppet(running, "tx2")
    waiting.stop_beating()
    running.await_event("dropped")
    assert running.named("dropped") == ["tx2"]
    busy.give()
    busy.take()
    busy.connection.send({"loss": 1.0, "accuracy": 0.5, "seconds": 0.1})
    assert_whole(running, 1)


@pytest.mark.parametrize("taken", [False, True], ids=["waiting", "holding"])
def test_one_that_returns_takes_the_place_of_its_old_connection(tmp_path, taken):
    """The old one never noticed that it is dead. What it held is done by somebody, once."""
    running = Running(work(tmp_path, 8, schedule=RateSchedule()))
    old = Puppet(running, "nano")
    if taken:
        old.take()
    Member(running, "nano").end()
    account = assert_whole(running, 8)
    assert account["workers"]["nano"]["steps"] == 8
    assert running.named("replaced") == ["nano"]
    assert running.named("dropped") == []
    with pytest.raises(framing.WireError):
        old.give()
        while True:
            old.take()


def test_one_that_returns_again_and_again_makes_each_step_once(tmp_path):
    running = Running(work(tmp_path, 60, checkpoint_every=3))
    steady = Member(running, "tx2", data=slowly())
    for _ in range(10):
        flighty = Puppet(running, "nano")
        flighty.take()
        flighty.give()
    flighty.leave()
    steady.end()
    assert_whole(running, 60)
    assert len(running.named("joined")) == 11


def test_one_that_comes_five_times_at_once_makes_each_step_once(tmp_path):
    running = Running(work(tmp_path, 30))
    crowd = [Member(running, "nano", data=slowly()) for _ in range(5)]
    account = assert_whole(running, 30)
    for member in crowd:
        member.join(10)
        assert not member.is_alive()
    assert account["workers"]["nano"]["steps"] == 30
    assert account["workers"]["nano"]["bytes"] <= sum(member.bytes for member in crowd)


def test_what_a_replaced_connection_still_brings_is_not_mixed_with_the_new(tmp_path):
    running = Running(work(tmp_path, 3))
    old = Puppet(running, "nano")
    old.take()
    new = Puppet(running, "nano")
    new.take()
    with pytest.raises(framing.WireError):
        old.give(gradient=1e9)
        old.take()
    for _ in range(3):
        new.give()
        new.take()
    new.connection.send({"loss": 1.0, "accuracy": 0.5, "seconds": 0.1})
    assert_whole(running, 3)
    assert np.abs(running.saved().weights).max() < 10


def test_when_the_first_dies_before_it_has_given_the_weights_the_next_gives_them(tmp_path):
    running = Running(work(tmp_path, 4))
    first = running.connect("nano")
    first.send({"layout": layout_of(Softmax()).encode()})
    assert first.receive().meta == {"initial": True}
    second = Member(running, "tx2")
    first.close()
    assert second.end().steps == 4
    assert_whole(running, 4)


def test_the_worker_beside_the_server_gives_the_weights_though_others_have_built_first(tmp_path):
    """They cross no network: over a slow link, all would wait for them for minutes."""
    running = Running(work(tmp_path, 4, host="tx2"))
    far = running.connect("nano")
    far.send({"layout": layout_of(Softmax()).encode()})
    near = running.connect("tx2")
    near.send({"layout": layout_of(Softmax()).encode()})
    assert near.receive().meta == {"initial": True}
    replica = Softmax()
    near.send({}, framing.as_bytes((replica.weights, replica.state)))
    assert far.receive(lambda _: framing.as_bytes((replica.state,))).meta["initial"] is False
    for connection in (near, far):
        connection.close()
    running.stopping.set()
    assert running.account()["done"] == 0


def test_a_worker_beside_the_server_that_does_not_come_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(parameter_server, "PATIENCE_S", 0.3)
    running = Running(work(tmp_path, 4, host="tx2"))
    began = time.monotonic()
    assert Member(running, "nano").end().steps == 4
    assert time.monotonic() - began > 0.3
    assert_whole(running, 4)


def test_a_run_can_be_stopped_while_others_wait_for_the_worker_beside_the_server(tmp_path):
    running = Running(work(tmp_path, 4, host="tx2"))
    far = running.connect("nano")
    far.send({"layout": layout_of(Softmax()).encode()})
    running.stopping.set()
    assert running.account()["done"] == 0
    far.close()


def test_the_last_evaluation_is_done_by_another_if_its_worker_dies(tmp_path):
    running = Running(work(tmp_path, 1))
    doomed = Puppet(running, "nano")
    doomed.take()
    doomed.give()
    assert taken(doomed) == ("evaluate", 1)
    other = Member(running, "tx2")
    doomed.leave()
    other.end()
    assert [one["worker"] for one in assert_whole(running, 1)["evaluations"]] == ["tx2"]


def test_everybody_is_told_when_it_is_over_and_no_thread_is_left(tmp_path):
    before = set(threading.enumerate())
    running = Running(work(tmp_path, 5))
    members = [Member(running, name) for name in ("nano", "tx2", "pc", "pi")]
    for member in members:
        member.end()
    assert_whole(running, 5)
    deadline = time.monotonic() + 10  # heartbeats end at their next beat
    while (left := set(threading.enumerate()) - before) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert left == set()


def test_workers_notice_that_the_server_is_gone(tmp_path):
    running = Running(work(tmp_path, 5))
    listener = running.connect("nano")
    lost = []
    pulse = running.pulse("tx2", lost.append)
    pulse._connection.abort()
    deadline = time.monotonic() + 10
    while not lost and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(lost) == 1
    listener.close()
    running.stopping.set()
    running.account()


# -- stopping and going on -----------------------------------------------------------------------------


def test_asked_to_stop_it_leaves_a_checkpoint_to_go_on_from(tmp_path):
    running = Running(work(tmp_path, 10))
    puppet = Puppet(running, "nano")
    for _ in range(3):
        puppet.take()
        puppet.give()
    puppet.take()
    running.stopping.set()
    account = running.account()
    assert (account["finished"], account["reason"], account["done"]) == (False, "stopped", 3)
    assert running.saved().meta["step"] == 3


def test_a_run_that_nobody_joined_can_be_stopped(tmp_path):
    running = Running(work(tmp_path, 10))
    running.stopping.set()
    assert running.account()["done"] == 0
    assert not os.path.exists(running.work.checkpoint_path)


@pytest.mark.parametrize("kind", ["cosine", "constant"])
def test_a_resumed_run_comes_to_the_same_as_one_without_a_break(tmp_path, kind):
    def run(folder, steps, skip=0, **changes):
        """Also gives the first part the schedule of the whole."""
        folder.mkdir()
        running = Running(work(folder, steps, schedule=RateSchedule(kind, 20, 2), evaluate_every=6, **changes))
        Member(running, "nano", Softmax(seed=skip), Drawn(skip)).end()
        return assert_whole(running, steps, before=skip), running.saved()

    _, whole = run(tmp_path / "whole", 20)
    _, half = run(tmp_path / "half", 9)
    account, rest = run(tmp_path / "rest", 20, 9, resume=str(tmp_path / "half" / "checkpoint.npz"))
    assert half.meta["step"] == 9
    for part in ("weights", "momentum", "state"):
        np.testing.assert_allclose(getattr(rest, part), getattr(whole, part), rtol=1e-4, atol=1e-6)
    assert [one["step"] for one in account["evaluations"]] == [12, 18, 20]
    assert [one["step"] for one in rest.meta["evaluations"]] == [6, 9, 12, 18, 20]


def test_resuming_a_run_that_has_ended_is_at_once_over(tmp_path):
    first = Running(work(tmp_path, 4))
    Member(first, "nano").end()
    first.account()
    again = Running(work(tmp_path, 4, resume=first.work.checkpoint_path))
    assert_whole(again, 4, before=4)


def test_a_checkpoint_past_the_last_step_or_damaged_is_refused_before_anything_starts(tmp_path):
    first = Running(work(tmp_path, 4))
    Member(first, "nano").end()
    first.account()
    path = first.work.checkpoint_path
    with pytest.raises(ValueError, match="4 steps are done already"):
        Running(work(tmp_path, 3, resume=path))
    with open(path, "r+b") as stream:
        stream.truncate(100)
    with pytest.raises(ValueError, match="damaged"):
        Running(work(tmp_path, 8, resume=path))


# -- training that diverges ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "replica",
    [Diverging(loss=np.nan), Diverging(loss=np.inf), Diverging(gradient=np.nan), Diverging(gradient=-np.inf)],
    ids=["nan loss", "infinite loss", "nan gradient", "infinite gradient"],
)
def test_a_run_that_diverges_ends_says_so_and_keeps_its_last_good_checkpoint(tmp_path, replica):
    running = Running(work(tmp_path, 50, checkpoint_every=1))
    Member(running, "nano", replica).end()
    account = running.account()
    assert (account["finished"], account["done"]) == (False, 2)
    assert "diverged" in account["reason"]
    assert "nano" in account["reason"]
    assert running.named("diverged") == ["nano"]
    assert running.saved().meta["step"] in (1, 2)
    assert np.isfinite(running.saved().weights).all()
    for event in [*running.events, account]:
        json.dumps(event, allow_nan=False)


@pytest.mark.parametrize(("sync", "waits"), [("asynchronous", False), ("bounded", False), ("synchronous", True)])
def test_a_run_that_diverges_names_what_would_help(tmp_path, sync, waits):
    running = Running(
        work(
            tmp_path,
            50,
            optimiser=OptimizerSettings(0.03, 0.7, 0.0),
            strategy=Strategy.from_text("parameter-server:sync=" + sync),
            members=3,
        )
    )
    Member(running, "nano", Diverging(loss=np.nan)).end()
    reason = running.account()["reason"]
    assert "; lower the learning rate of 0.03" in reason
    assert ("let workers wait for one another (sync=synchronous)" in reason) != waits
    assert "\n" not in reason


def test_an_evaluation_that_is_not_finite_is_divergence_too(tmp_path):
    running = Running(work(tmp_path, 1))
    puppet = Puppet(running, "nano")
    puppet.take()
    puppet.give()
    puppet.take()
    puppet.connection.send({"loss": float("nan"), "accuracy": 0.1, "seconds": 0.1})
    assert puppet.take()["kind"] == "finish"
    assert "evaluation at step 1" in running.account()["reason"]


# -- strangers and strange members ---------------------------------------------------------------------


def test_strangers_neither_join_nor_disturb(tmp_path):
    running = Running(work(tmp_path, 6, heartbeat_s=FAST))
    mute = socket.create_connection(("127.0.0.1", running.port))
    for raw in (b"\x16\x03\x01\xff\xff" + b"\0" * 400, b"GET / HTTP/1.1\r\n\r\n", b"plnr" + b"\xff" * 12):
        with socket.create_connection(("127.0.0.1", running.port)) as sock:
            sock.sendall(raw)
    with pytest.raises(framing.WireError):
        running.connect("nano", Authority()).receive()
    running.await_event("refused", 5)
    mute.close()
    Member(running, "nano").end()
    assert list(assert_whole(running, 6)["workers"]) == ["nano"]
    assert all(reason.startswith("127.0.0.1: ") for reason in running.named("refused"))


@pytest.mark.parametrize(
    "hello",
    [{}, {"layout": None}, {"layout": [[["w", 3, 0, 1]], []]}, {"layout": [[], [], []]}, {"layout": 7}],
    ids=str,
)
def test_a_member_without_a_proper_layout_is_dropped(tmp_path, hello):
    running = Running(work(tmp_path, 2))
    running.connect("odd").send(hello)
    running.await_event("dropped")
    Member(running, "nano").end()
    assert_whole(running, 2)


def test_a_member_with_another_model_is_dropped_with_the_reason(tmp_path):
    running = Running(work(tmp_path, 2))
    puppet = Puppet(running, "nano")
    odd = running.connect("odd")
    odd.send({"layout": [[["other", [2], 0, 2]], []]})
    running.await_event("dropped")
    assert [event["reason"] for event in running.events if "dropped" in event] == [
        "its model is not the run's: the arrays have other names or shapes"
    ]
    puppet.leave()
    Member(running, "nano").end()
    assert_whole(running, 2)


@pytest.mark.parametrize("loss", [None, "low", [1]], ids=str)
def test_an_answer_without_a_loss_drops_its_sender(tmp_path, loss):
    running = Running(work(tmp_path, 2))
    puppet = Puppet(running, "odd")
    puppet.take()
    puppet.give(loss)
    running.await_event("dropped")
    Member(running, "nano").end()
    assert assert_whole(running, 2)["workers"]["odd"]["steps"] == 0


def test_a_worker_without_a_test_set_says_so_before_it_begins(tmp_path):
    running = Running(work(tmp_path, 2))
    with pytest.raises(ValueError, match="the test set is empty"):
        worker.run(running.connect("nano"), Softmax(), Drawn(), (TEST[0][:0], TEST[1][:0]))
    running.stopping.set()
    running.account()
