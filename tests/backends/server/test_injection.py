"""Workers of a parameter server give samples to one another, which it forwards."""

import threading

import numpy as np
import pytest

from backends.network import framing, sample_frames
from backends.protocol.events import Dropped, Joined
from backends.protocol.frames import Share, SharedSamples, WorkerStep
from backends.strategies.data_injection import sharers
from backends.strategies.strategy import Strategy
from backends.training import checkpoint
from tests.backends.fakes import BATCH, CLASSES, run_spec
from tests.backends.injected_batches import LabelBatches
from tests.backends.server_run import ScriptedWorker, ServerRun, WorkerThread, assert_whole

NAMES = ("nano", "pc", "tx2")
#: Members of a run, each with one label of three.
MEMBERS = len(NAMES)
SYNCHRONOUS = Strategy.from_text("parameter-server:sync=synchronous")


def trained(folder, steps, inject="alpha=1,beta=0.5", strategy=SYNCHRONOUS, **changes):
    """A run whose workers have one label each: the run, the workers, and the batches of each.

    They compute their first step when all are there.
    """
    run = ServerRun(run_spec(folder, steps, strategy=strategy, members=MEMBERS, inject=inject, **changes))
    together, workers = threading.Event(), []
    batches = [LabelBatches(label, before=together.wait) for label in range(CLASSES)]
    for count, (name, each) in enumerate(zip(NAMES, batches, strict=True), 1):
        workers.append(WorkerThread(run, name, batches=each))
        run.await_event(Joined, count)
    together.set()
    for worker in workers:
        worker.end()
    return run, workers, dict(zip(NAMES, batches, strict=True))


def told(batches):
    return {name: each.injection.statistics() for name, each in batches.items()}


def test_batches_stay_as_large_as_they_are_and_have_samples_of_all_others(tmp_path):
    run, _, batches = trained(tmp_path, 10 * MEMBERS)
    assert_whole(run, 10 * MEMBERS)
    for label, each in enumerate(batches.values()):
        assert each.seen[0][label] == BATCH  # nobody has given anything yet
        assert len(each.seen) == 10 and all(sum(seen) == BATCH for seen in each.seen)
        assert min(map(sum, zip(*each.seen, strict=True))) > BATCH
    figures = told(batches)
    for name, mine in figures.items():
        others = [each for other, each in figures.items() if other != name]
        assert set(mine.shared_with) == {other for other in NAMES if other != name}
        # What is given in the last round has no next step to go with.
        given_before = sum(each.shared_with[name] for each in others)
        last = 2 * BATCH
        assert given_before - last <= mine.received <= given_before
        assert mine.used == mine.received - mine.waiting - mine.dropped > 0


def test_only_those_give_whose_turn_it_is(tmp_path):
    rounds = 12
    run, _, batches = trained(tmp_path, rounds * MEMBERS, "alpha=0.4,beta=1", seed=5)
    assert_whole(run, rounds * MEMBERS)
    for name, each in batches.items():
        gave = [share is not None for share in each.asked]
        # In the first round some were alone yet.
        assert gave[1:] == [name in sharers(NAMES, 0.4, 5, step) for step in range(1, rounds)]


@pytest.mark.parametrize("text", ["parameter-server", "async-diloco"])
def test_workers_that_do_not_wait_for_one_another_give_too(tmp_path, text):
    run, _, batches = trained(tmp_path, 60, strategy=Strategy.from_text(text))
    assert_whole(run, 60)
    figures = told(batches).values()
    assert sum(each.shared for each in figures) > 0
    assert sum(each.received for each in figures) <= sum(sum(each.shared_with.values()) for each in figures)


def test_a_resumed_run_goes_on_and_what_was_under_way_is_lost(tmp_path):
    first, _, _ = trained(tmp_path, 3 * MEMBERS)
    assert_whole(first, 3 * MEMBERS)
    again, _, batches = trained(tmp_path, 6 * MEMBERS, resume=str(tmp_path / "checkpoint.npz"))
    assert_whole(again, 6 * MEMBERS, 3 * MEMBERS)
    for label, each in enumerate(batches.values()):
        assert each.seen[0][label] == BATCH
    assert checkpoint.peek(str(tmp_path / "checkpoint.npz"))["step"] == 6 * MEMBERS


def test_a_worker_that_gives_more_than_it_was_asked_for_is_sent_away(tmp_path):
    run = ServerRun(run_spec(tmp_path, 4, inject="alpha=1,beta=0.5", members=2))
    bold, other = ScriptedWorker(run, "bold"), ScriptedWorker(run, "other")
    bold.receive_order()  # which may be from before the other one was there
    bold.push()
    share = bold.receive_order().share
    assert isinstance(share, Share) and share.receivers == ("other",)
    for head, content in sample_frames.packed([b"x"] * (share.samples + 1), 0):
        bold.connection.send(head, framing.as_bytes((content,)))
    run.await_event(Dropped)
    assert "more samples than it was asked for" in run.emitted(Dropped)[0].reason
    run.stopping.set()
    other.leave()
    run.account()


def test_samples_come_with_the_next_step_and_who_has_left_is_given_none(tmp_path):
    run = ServerRun(run_spec(tmp_path, 40, inject="alpha=1,beta=0.5", members=2))
    giver, receiver = ScriptedWorker(run, "giver"), ScriptedWorker(run, "receiver")
    giver.receive_order()
    giver.push()
    receiver.receive_order()
    share = giver.receive_order().share
    ((head, content),) = sample_frames.packed([b"sample"] * share.samples, 0)
    giver.connection.send(head, framing.as_bytes((content,)))
    giver.push()
    assert giver.receive_order().share is not None
    receiver.push()
    arrived = np.empty_like(content)
    forwarded = receiver.connection.receive(SharedSamples, payload=lambda _: framing.as_bytes((arrived,)))
    assert forwarded == head and arrived.tobytes() == b"sample" * share.samples
    assert isinstance(receiver.receive_order(), WorkerStep)
    receiver.leave()
    run.await_event(Dropped)
    giver.push()
    assert giver.receive_order().share is None  # it is alone now
    run.stopping.set()
    giver.push()
    run.account()
