"""Peers end with the weights of one process.

This holds for every topology, and whoever joins, leaves or resumes.
"""

import contextlib
import itertools

import numpy as np
import pytest

from backends.frameworks.optimizer import OptimizerSettings
from backends.hosting.run_clock import RunClock
from backends.jobs.failure import JobFailure
from backends.jobs.job import ACCURACY
from backends.network.mailbox import RUN_OVER
from backends.peers.exchanges import gradients
from backends.protocol.events import CheckpointWritten, Dropped, Joined, Silent
from backends.strategies.compatibility import PARTS
from backends.strategies.presets import PRESETS
from tests.backends.fakes import Faulty, Softmax, train_on_all, train_on_all_with
from tests.backends.peer_run import NAMES, PeerRun, shard
from tests.backends.replicas import small_replica
from tests.installed import EACH, MIXED
from tests.running import HANG_S

ENDLESS = 10**9
#: Synchronous and lossless: all gradients of a step reach everyone within it.
WHOLE = [
    ("baseline", 3),
    ("allreduce", 2),
    ("allreduce", 3),
    ("allreduce", 4),
    ("crossover-hierarchical:topology=groups:count=2,between=all,aggregation=mean", 3),
    ("crossover-hierarchical:topology=groups:count=2,between=ring,aggregation=mean", 4),
    ("dlion:compressor=dense,batching=fixed,knowledge=none", 3),
    # Two peers have one another's weights in every step, whatever they merge by.
    ("crossover", 2),
    ("crossover:topology=random:segments=1", 2),
    ("crossover-hierarchical", 2),
    ("sgp", 2),
]
PEERS = [name for name, strategy in PRESETS.items() if strategy.topology != "server"]


def test_exchanges_are_timed_as_steps_are(tmp_path):
    run = PeerRun(tmp_path, "allreduce", 16, 2)
    threads = [run.start(seed) for seed in range(2)]
    for thread in threads:
        thread.end()
        clock = thread.peer.exchange_clock
        assert clock.under_way()[2] > 0 and clock.under_way()[1] == 0.0


@pytest.mark.parametrize("told", [True, False], ids=["told that the run is over", "told nothing"])
def test_a_peer_has_lost_its_coordinator_unless_it_was_told_that_the_run_is_over(tmp_path, told):
    run = PeerRun(tmp_path, "allreduce", 10**9, 1)
    thread = run.start(0)
    run.await_event(Joined)
    if told:
        thread.mailbox.call(RUN_OVER)
    thread.connection.abort()
    thread.join(HANG_S)
    assert thread.failure is None if told else thread.failure.startswith("WireError")
    run.stopping.set()
    assert not run.account().finished


@pytest.mark.parametrize("momentum", [0.0, 0.5])
@pytest.mark.parametrize(("text", "members"), WHOLE)
def test_a_synchronous_lossless_run_is_one_process_with_all_batches(tmp_path, text, members, momentum):
    expect_one_process(tmp_path, text, members, momentum, ("numpy",))


@pytest.mark.parametrize("frameworks", [*EACH, MIXED])
def test_a_run_of_one_framework_or_of_several_is_one_process_with_all_batches(tmp_path, frameworks):
    expect_one_process(tmp_path, "allreduce", 3, 0.5, frameworks)


def expect_one_process(folder, text, members, momentum, frameworks):
    # Built before the run begins, which does not wait for as long as an import may take.
    replicas = [small_replica(name) for name in itertools.islice(itertools.cycle(frameworks), members)]
    run = PeerRun(folder, text, 8 * members, members, momentum=momentum)
    threads = [run.start(seed, replica=replica) for seed, replica in enumerate(replicas)]
    together = train_on_all(8, map(shard, range(members)), momentum, replica=small_replica(frameworks[0]))
    for weights in [thread.end() for thread in threads]:
        np.testing.assert_allclose(weights, together, rtol=1e-4, atol=1e-5)
    account = run.account()
    assert account.finished
    assert {each.steps for each in account.workers.values()} == {8}
    np.testing.assert_allclose(run.saved().weights, together, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("members", [1, 2, 3, 4])
@pytest.mark.parametrize("text", ["allreduce", "baseline"])
def test_planned_batches_of_different_sizes_are_one_process_with_all_of_them(tmp_path, text, members):
    planned = dict(zip(NAMES, (5, 1, 11, 4), strict=True))
    chosen = {name: planned[name] for name in NAMES[:members]}
    text += ":aggregation=samples"
    run = PeerRun(tmp_path, text, 8 * members, members, momentum=0.5, batches=chosen)
    threads, drawn = run.start_all(), [shard(seed) for seed in range(members)]
    for each, size in zip(drawn, chosen.values(), strict=True):
        each.batch = size
    together = train_on_all(8, drawn, 0.5)
    for thread in threads:
        np.testing.assert_allclose(thread.end(), together, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("text", ["allreduce", "baseline"])
@pytest.mark.parametrize(("kind", "rate"), [("lars", 2.0), ("adam", 0.02), ("adamw", 0.02)])
def test_the_optimizer_takes_merged_gradients(tmp_path, text, kind, rate):
    optimizer = OptimizerSettings(rate, 0.5, 0.01, kind)
    run = PeerRun(tmp_path, text + ":optimizer=" + kind, 16, 2, optimizer=optimizer)
    together = train_on_all_with(optimizer, 8, map(shard, range(2)))
    for thread in run.start_all():
        np.testing.assert_allclose(thread.end(), together, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ("allreduce:compressor=float16", 2),
        ("allreduce:compressor=float16", 4),
        ("crossover-hierarchical:topology=groups:count=2,between=ring,aggregation=mean,compressor=float16", 4),
        ("crossover-hierarchical:topology=groups:count=2,between=all,aggregation=mean,compressor=float16", 3),
    ],
)
def test_rounded_gradients_change_the_weights_little_and_those_of_a_group_alike(tmp_path, text, members):
    run = PeerRun(tmp_path, text, 40 * members, members, momentum=0.5)
    weights = [thread.end() for thread in run.start_all()]
    assert run.account().finished
    for each in weights:
        np.testing.assert_allclose(each, train_on_all(40, map(shard, range(members)), 0.5), atol=0.002)
    if "all" not in text.partition(":")[2]:  # leaders that send to all do not round their own
        for each in weights[1:]:
            np.testing.assert_array_equal(each, weights[0])


@pytest.mark.parametrize("name", PEERS)
def test_every_preset_learns(tmp_path, name):
    run = PeerRun(tmp_path, name, 90, 3, evaluate_every=45, checkpoint_every=30)
    for thread in run.start_all():
        thread.end()
    account = run.account()
    assert account.finished
    assert account.evaluations[-1].metrics[ACCURACY] > 0.8
    assert run.saved().meta["step"] == 90


@pytest.mark.parametrize(("what", "call", "made"), [("gradient", 5, 4), ("evaluate", 1, 3)])
def test_peers_that_all_fail_at_once_save_the_weights_of_their_last_step(tmp_path, what, call, made):
    run = PeerRun(tmp_path, "allreduce", 90, 2, evaluate_every=6)
    threads = [run.start(seed, replica=Faulty(what, call)) for seed in range(2)]
    for thread in threads:
        thread.join(HANG_S)
        assert thread.failure == f"ArithmeticError: a faulty {what}" or what == "evaluate"
    assert not run.account().finished and "ArithmeticError" in run.account().reason
    assert run.saved().meta["step"] == 2 * made
    np.testing.assert_allclose(run.saved().weights, train_on_all(made, map(shard, range(2))), rtol=1e-4, atol=1e-6)


@contextlib.contextmanager
def job_code():
    try:
        yield
    except ArithmeticError as error:
        raise JobFailure(str(error)) from None


def test_an_error_of_the_job_on_one_peer_ends_the_run_of_all(tmp_path):
    run = PeerRun(tmp_path, "allreduce", ENDLESS, 3)
    replicas = [Softmax(), Faulty("gradient", 5), Softmax()]
    threads = [run.start(seed, replica=replica, own_code=job_code) for seed, replica in enumerate(replicas)]
    for thread in threads:
        thread.join(HANG_S)
    assert [thread.failure for thread in threads] == [None, "JobFailure: a faulty gradient", None]
    assert run.account().reason == "pc failed: JobFailure: a faulty gradient"
    assert run.saved().meta["step"] == 12
    np.testing.assert_allclose(run.saved().weights, train_on_all(4, map(shard, range(3))), rtol=1e-4, atol=1e-6)


def test_another_error_of_one_peer_costs_the_run_that_peer(tmp_path):
    run = PeerRun(tmp_path, "allreduce", 60, 2)
    faulty, other = run.start(0, replica=Faulty("gradient", 5)), run.start(1)
    other.end()
    faulty.join(HANG_S)
    assert [event.reason for event in run.emitted(Dropped)] == ["ArithmeticError: a faulty gradient"]
    assert faulty.failure == "ArithmeticError: a faulty gradient" and run.account().finished


def test_checkpoints_of_peers_go_by_the_clock(tmp_path):
    run, now_s = PeerRun(tmp_path, "allreduce", ENDLESS, 2, checkpoint_every_s=60.0), [0.0]
    run.host.run_state.clock = RunClock(lambda: now_s[0])
    threads = run.start_all()
    for minute in (1, 2):
        now_s[0] += 61.0
        run.await_event(CheckpointWritten, minute)
    run.stopping.set()
    for thread in threads:
        thread.end()
    run.account()
    steps = [event.step for event in run.emitted(CheckpointWritten)]
    assert len(steps) == 3 and steps == sorted(set(steps))


@pytest.mark.parametrize("name", PEERS)
def test_a_single_peer_is_plain_sgd(tmp_path, name):
    text = (
        name + ":compressor=dense" + (",batching=fixed,aggregation=mean" if PRESETS[name].batching != "fixed" else "")
    )
    run = PeerRun(tmp_path, text, 10, 1, momentum=0.5)
    (thread,) = run.start_all()
    np.testing.assert_allclose(thread.end(), train_on_all(10, [shard(0)], 0.5), rtol=1e-5, atol=1e-6)


#: One of each kind of exchange.
EXCHANGES = ["baseline", "allreduce", "crossover", "ad-psgd", "diloco:local=steps:every=5"]
#: The other topologies, and what waits otherwise, deals out batches or sends by link.
OTHERS = [
    "sgp", "crossover-hierarchical", "dlion", "hop", "ako", "scadles", "allreduce:compressor=float16",
    "crossover-hierarchical:topology=groups:count=2,between=ring,aggregation=mean,compressor=float16",
    "baseline:sync=bounded:staleness=1,aggregation=samples,local=steps:every=5",
]  # fmt: skip
MEMBERS_CHANGE = [*EXCHANGES, *(pytest.param(text, marks=pytest.mark.chaos) for text in OTHERS)]


def test_membership_changes_are_tested_in_every_topology():
    tested = {PRESETS[text.partition(":")[0]].topology for text in (*EXCHANGES, *OTHERS)}
    assert tested == set(PARTS["topology"]) - {"server"}


@pytest.mark.parametrize("text", MEMBERS_CHANGE)
def test_a_peer_that_dies_leaves_the_others_a_valid_topology(tmp_path, text):
    run = PeerRun(tmp_path, text, 1500, 3, evaluate_every=10_000)
    threads = run.start_all()
    run.await_steps(60)
    threads[1].cut()
    for thread in (threads[0], threads[2]):
        thread.end()
    account = run.account()
    assert account.finished
    made = {name: each.steps for name, each in account.workers.items()}
    assert made["pc"] < 500 < made["nano"] + made["tx2"]
    assert account.evaluations[-1].metrics[ACCURACY] > 0.8


@pytest.mark.parametrize("text", MEMBERS_CHANGE)
def test_a_peer_that_joins_begins_with_the_weights_of_the_others(tmp_path, text):
    run = PeerRun(tmp_path, text, 1500, 2, momentum=0.5)
    first = [run.start(0), run.start(1)]
    run.await_steps(100)
    late = run.start(2, initial=7)
    weights = [thread.end() for thread in (*first, late)]
    account = run.account()
    assert account.finished
    assert account.workers["tx2"].steps > 10
    assert account.evaluations[-1].metrics[ACCURACY] > 0.8
    if text.startswith(("allreduce", "baseline", "diloco")) and "bounded" not in text:
        for each in weights[1:]:
            np.testing.assert_array_equal(each, weights[0])


@pytest.mark.parametrize("text", MEMBERS_CHANGE)
def test_a_peer_that_dies_and_comes_back_is_a_member_again(tmp_path, text):
    run = PeerRun(tmp_path, text, 1500, 3, evaluate_every=10_000)
    threads = run.start_all()
    run.await_steps(60)
    threads[0].cut()
    run.await_event(Dropped)
    again = run.start(0, initial=7)
    for thread in (again, *threads[1:]):
        thread.end()
    account = run.account()
    assert account.finished
    assert account.evaluations[-1].metrics[ACCURACY] > 0.8
    assert run.members(Joined).count("nano") == 2
    made = [each.steps for each in account.workers.values()]
    assert min(made) > 60 and sum(made) >= 1500


@pytest.mark.parametrize(
    "text",
    [
        "baseline", "baseline:compressor=top-k:share=0.1", "allreduce", "crossover:topology=random:segments=2", "gaia",
        "allreduce:optimizer=adam", "crossover:optimizer=adamw", "baseline:optimizer=lars",
    ],
)  # fmt: skip
def test_a_synchronous_run_that_was_stopped_goes_on_as_if_it_had_not_been(tmp_path, text):
    def train(folder, rounds, skip=0, resume=None):
        folder.mkdir()
        run = PeerRun(folder, text, 3 * rounds, 3, momentum=0.5, resume=resume)
        weights = [thread.end() for thread in run.start_all(skip=skip)]
        assert run.account().finished
        return weights

    whole = train(tmp_path / "whole", 9)
    train(tmp_path / "half", 4)
    rest = train(tmp_path / "rest", 9, 4, str(tmp_path / "half" / "checkpoint.npz"))
    for one, other in zip(rest, whole, strict=True):
        np.testing.assert_array_equal(one, other)


def clock_of(*seconds):
    """A clock that a peer reads three times a step: its steps take these seconds, then the last."""
    now = 0.0
    for step_s in itertools.chain(seconds, itertools.repeat(seconds[-1])):
        yield now
        now += step_s
        yield now
        yield now


def test_the_budget_of_transfers_is_the_time_of_recent_gradients(tmp_path):
    """Otherwise a slow first step would have links filled for many steps to come."""
    run, budgets = PeerRun(tmp_path, "dlion:batching=fixed", 12, 2), []
    thread = run.start(0, clock=clock_of(1.0, 0.01).__next__)
    step = thread.exchange.step
    thread.exchange.step = lambda *given: (budgets.append(given[-1]), step(*given))
    other = run.start(1)  # the first step is not made before
    thread.end()
    other.end()
    assert budgets == pytest.approx([1.0] + 5 * [0.01])


def test_a_link_that_has_not_been_measured_gets_a_small_budget(tmp_path):
    """A whole gradient of a large model would keep a slow link busy for many steps."""
    run, budgets = PeerRun(tmp_path, "ako", 6, 2), []
    thread = run.start(0)
    budget = thread.exchange._budget_bytes
    thread.exchange._budget_bytes = lambda *given: (budgets.append(budget(*given)), budgets[-1])[1]
    other = run.start(1)
    thread.end()
    other.end()
    # The messages of 39 weights are too small to measure a link by, so that all are like the first.
    assert set(budgets) == {gradients.FIRST_BYTES}


def test_all_messages_of_a_step_are_made_before_the_first_is_sent(tmp_path):
    """Otherwise a link would be measured while the others rest."""
    run, seen = PeerRun(tmp_path, "dlion:batching=fixed", 9, 3), []
    thread = run.start(0)
    chooses, sends = thread.exchange._compressor_for, thread.mailbox.send
    thread.exchange._compressor_for = lambda peer: (seen.append("chosen"), chooses(peer))[1]
    thread.mailbox.send = lambda *given, **beside: (seen.append("sent"), sends(*given, **beside))
    others = [run.start(1), run.start(2)]
    for each in (thread, *others):
        each.end()
    assert seen == 3 * ["chosen", "chosen", "sent", "sent"]


def test_a_frozen_peer_is_dropped_and_the_others_go_on(tmp_path):
    run = PeerRun(tmp_path, "allreduce", 1500, 3, heartbeat_s=1.0, evaluate_every=10_000)
    threads = run.start_all()
    run.await_steps(60)
    threads[1].freeze()
    for thread in (threads[0], threads[2]):
        thread.end()
    assert run.account().finished
    assert any(isinstance(event, Silent) for event in run.events)
