"""What is sent and when workers go on, on a real server: the same weights as they should be, kept over a resumption."""

import itertools
import threading

import numpy as np
import pytest

from backends import checkpoint
from backends.base import Optimiser
from backends.schedule import Schedule
from backends.strategies.gates import parse
from backends.strategies.registry import SENDERS, keeps, sender
from tests.backends.fakes import Member, Puppet, Running, Softmax, batches, work
from tests.backends.small import replica
from tests.installed import EACH, MIXED, using

NAMES = ("nano", "pc", "tx2")
MOMENTUM = 0.5


def saved(running):
    return checkpoint.read(running.server.work.checkpoint_path)[0]


def union(one, steps, workers, momentum):
    """The weights of one process that takes the batches of all ``workers`` together in each of its steps."""
    drawn = [batches(seed=seed) for seed in range(workers)]
    for _ in range(steps):
        together = [np.concatenate(part) for part in zip(*(next(each) for each in drawn), strict=True)]
        one.gradient(*together, rate=0.1)
        one.update(momentum)
    one.fetch()
    return one.weights


def plain(folder, steps, gate="asynchronous", momentum=0.0, **changes):
    values = {"optimiser": Optimiser(0.1, momentum, 0.0), "schedule": Schedule(), "gate": parse(gate), **changes}
    return work(folder, steps, **values)


@pytest.mark.parametrize("momentum", [0.0, MOMENTUM])
@pytest.mark.parametrize("frameworks", [using("numpy"), *EACH, MIXED])
def test_synchronous_workers_do_what_one_process_does_with_all_their_batches(tmp_path, frameworks, momentum):
    running = Running(plain(tmp_path, 30, "synchronous", momentum))
    together = threading.Event()

    def when_all_have_joined(seed):
        assert together.wait(20)
        yield from batches(seed=seed)

    replicas = map(replica, itertools.cycle(frameworks))
    members = [Member(running, name, next(replicas), when_all_have_joined(seed)) for seed, name in enumerate(NAMES)]
    running.await_event("joined", 3)
    together.set()
    for member in members:
        member.end()
    assert {each["steps"] for each in running.account()["workers"].values()} == {10}
    expected = union(replica(frameworks[0]), 10, 3, momentum)
    np.testing.assert_allclose(saved(running).weights, expected, rtol=1e-4, atol=1e-5)


def test_a_synchronous_round_is_applied_when_all_are_there(tmp_path):
    running = Running(plain(tmp_path, 6, "synchronous"))
    first, second = Puppet(running, "nano"), Puppet(running, "pc")
    for puppet in (first, second):
        assert puppet.take()["step"] in (0, 1)
    first.give(gradient=1.0)
    before = first.replica.weights.copy()
    second.give(gradient=3.0)
    assert first.take()["kind"] == second.take()["kind"] == "step"
    np.testing.assert_allclose(first.replica.weights, before - 2.0, rtol=1e-5)
    np.testing.assert_array_equal(first.replica.weights, second.replica.weights)
    second.leave()
    for _ in range(4):
        first.give()
        ticket = first.take()
    assert ticket["kind"] == "evaluate"
    first.connection.send({"loss": 1.0, "accuracy": 0.5, "seconds": 0.1})
    account = running.account()
    assert account["finished"]
    assert account["workers"]["nano"]["staleness"] == 0


def test_nobody_gets_further_ahead_than_the_bound(tmp_path):
    running = Running(plain(tmp_path, 60, "bounded:staleness=2"))
    slow, quick = Puppet(running, "slow"), Puppet(running, "quick")
    slow.take()
    for _ in range(3):
        quick.take()
        quick.give()
    quick.connection.settimeout(0.3)
    with pytest.raises(OSError, match="did not answer"):
        quick.take()
    running.stopping.set()
    running.account()


def test_a_backup_worker_is_not_waited_for_and_what_it_brings_counts_later(tmp_path):
    running = Running(plain(tmp_path, 30, "backup:backups=1,staleness=5"))
    slow, quick, other = (Puppet(running, name) for name in ("slow", "quick", "other"))
    for puppet in (slow, quick, other):
        puppet.take()
    for _ in range(2):
        quick.give()
        other.give()
        quick.take()
        other.take()
    slow.give(gradient=1.0)
    before = quick.replica.weights.copy()
    quick.give()
    quick.take()
    np.testing.assert_allclose(quick.replica.weights, before - 0.5, rtol=1e-5)
    running.stopping.set()
    running.account()


@pytest.mark.parametrize("text", SENDERS)
def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(tmp_path, text):
    """One worker, so that there is one order of events."""

    def train(folder, steps, drawn, resume=None):
        folder.mkdir(exist_ok=True)
        momentum = 0.0 if keeps(text) else MOMENTUM
        running = Running(plain(folder, steps, momentum=momentum, resume=resume, evaluate_every=100))
        replica = Softmax()
        correction = MOMENTUM if keeps(text) else 0.0
        member = Member(running, "nano", replica, drawn, sender=sender(text, replica.variables, correction))
        member.end()
        assert running.account()["finished"]
        return saved(running)

    whole = train(tmp_path / "whole", 12, batches())
    half = train(tmp_path / "half", 5, batches())
    rest = train(tmp_path / "rest", 12, batches(skip=5), str(tmp_path / "half" / "checkpoint.npz"))
    assert bool(half.kept) == (keeps(text) or text == "adaptive")
    np.testing.assert_array_equal(rest.weights, whole.weights)
    for one, other in zip(rest.kept.get("nano", ()), whole.kept.get("nano", ()), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_checkpoint_on_the_way_waits_for_what_all_workers_keep(tmp_path):
    running = Running(plain(tmp_path, 60, checkpoint_every=20))
    members = []
    for seed, name in enumerate(NAMES):
        replica = Softmax()
        slowly = batches(seed=seed)
        members.append(Member(running, name, replica, slowly, sender=sender("top-k:share=0.1", replica.variables)))
    for member in members:
        member.end()
    assert running.account()["finished"]
    taken = [event for event in running.events if "checkpoint" in event]
    assert len(taken) >= 2
    assert set(saved(running).kept) <= set(NAMES)
    assert all(kept[0].shape == (39,) for kept in saved(running).kept.values())


def test_layers_that_stay_cost_nothing_either_way(tmp_path):
    def cost(text):
        running = Running(plain(tmp_path, 40, evaluate_every=100))
        replica = Softmax()
        Member(running, "nano", replica, sender=sender(text, replica.variables)).end()
        return running.account()["workers"]["nano"]["bytes"]

    # One of two layers goes, the one of 3 elements of 39: what is left are heads.
    dropped, everything = cost("layer-drop:ratio=0.5"), cost("everything")
    assert dropped < everything


def test_one_that_comes_back_is_given_all_layers_and_not_only_those_that_changed(tmp_path):
    running = Running(plain(tmp_path, 100))
    first, other = Puppet(running, "nano"), Puppet(running, "pc")
    first.take()
    again = Puppet(running, "nano")
    running.await_event("replaced")
    again.replica.weights[:] = 99
    again.take()
    other.take()
    np.testing.assert_array_equal(again.replica.weights, other.replica.weights)
    running.stopping.set()
    running.account()
