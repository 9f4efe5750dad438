"""Peers that make rounds of local steps, over real sockets."""

import numpy as np
import pytest

from backends.frameworks.layout import Variable
from backends.frameworks.optimizer import OptimizerSettings
from backends.jobs.job import ACCURACY
from backends.protocol.events import Dropped
from backends.protocol.frames import LocalRound
from backends.training.local_round import LocalUpdates
from tests.backends.fakes import BATCH, Softmax, train_on_all
from tests.backends.peer_run import PeerRun, shard
from tests.backends.replicas import NORMALISED, small_replica
from tests.installed import EACH, MIXED, computes_with

EACH_STEP = "local=steps:every=1"


def rounds_by_hand(rounds, steps, outer, momentum=0.0):
    """Weights after some rounds of members that make ``steps`` each; outer: (rate, momentum)."""
    replicas = [Softmax() for _ in steps]
    made = [LocalUpdates(r, shard(i), OptimizerSettings(0.1, momentum), False) for i, r in enumerate(replicas)]
    weights, m = Softmax().weights, np.zeros_like(Softmax().weights)
    for _ in range(rounds):
        changes = []
        for replica, local, count in zip(replicas, made, steps, strict=True):
            replica.weights[:] = weights
            local.make(LocalRound(count), 0.1, BATCH)
            changes.append(count * replica.gradients)
        change = sum(changes) / sum(steps)
        m = outer[1] * m + change
        weights = weights - outer[0] * (change + outer[1] * m)
    return weights


@pytest.mark.parametrize("topology", ["ring", "all", "groups:count=2"])
def test_equal_members_that_exchange_every_step_are_synchronous_sgd(tmp_path, topology):
    between = ",between=ring" if topology.startswith("groups") else ""
    aggregation = "mean" if topology.startswith("groups") else "samples"
    text = f"local-sgd:topology={topology}{between},aggregation={aggregation},{EACH_STEP}"
    run = PeerRun(tmp_path, text, 30, 3, momentum=0.5)
    for thread in run.start_all():
        np.testing.assert_allclose(thread.end(), train_on_all(10, map(shard, range(3)), 0.5), rtol=1e-4, atol=1e-5)
    assert run.saved().meta["step"] == 30


def test_one_member_without_an_outer_step_is_plain_sgd_bit_by_bit(tmp_path):
    run = PeerRun(tmp_path, "local-sgd:" + EACH_STEP, 10, 1, momentum=0.5)
    (thread,) = run.start_all()
    np.testing.assert_array_equal(thread.end(), train_on_all(10, [shard(0)], 0.5))


@pytest.mark.parametrize("frameworks", [*EACH, MIXED])
def test_members_of_every_framework_stay_alike(tmp_path, frameworks):
    run = PeerRun(tmp_path, "diloco:local=steps:every=3", 24, 2, momentum=0.5)
    replicas = [small_replica(frameworks[seed % len(frameworks)]) for seed in range(2)]
    weights = [thread.end() for thread in [run.start(seed, replica=each) for seed, each in enumerate(replicas)]]
    np.testing.assert_array_equal(weights[0], weights[1])
    assert run.account().finished


@pytest.mark.parametrize("topology", ["ring", "all"])
def test_a_round_is_the_outer_step_of_the_mean_change(tmp_path, topology):
    text = f"diloco:topology={topology},local=steps:every=5,outer=nesterov:gain=0.8,momentum=0.4"
    run = PeerRun(tmp_path, text, 60, 3, momentum=0.5)
    expected = rounds_by_hand(4, [5, 5, 5], (0.8, 0.4), 0.5)
    for thread in run.start_all():
        np.testing.assert_allclose(thread.end(), expected, rtol=1e-4, atol=1e-5)
    account = run.account()
    assert account.done == 60
    assert {member.steps for member in account.workers.values()} == {20}


def test_members_that_make_more_steps_weigh_more(tmp_path):
    run = PeerRun(tmp_path, "local-sgd:local=speed:every=6", 48, 2)
    state = run.host.run_state._local_steps
    for _ in range(5):
        state.record("nano", 10, 1.0)
        state.record("pc", 10, 3.0)
    state.record = lambda *_: None  # no measured time counts
    expected = rounds_by_hand(6, [6, 2], (1.0, 0.0))
    for thread in run.start_all():
        np.testing.assert_allclose(thread.end(), expected, rtol=1e-4, atol=1e-5)
    assert {name: member.steps for name, member in run.account().workers.items()} == {"nano": 36, "pc": 12}


def test_normalized_changes_weigh_all_members_alike(tmp_path):
    """FedNova: the mean of the changes by step, times the mean number of steps."""
    run = PeerRun(tmp_path, "local-sgd:local=speed:every=6,normalize=yes,aggregation=mean", 8, 2)
    state = run.host.run_state._local_steps
    for _ in range(5):
        state.record("nano", 10, 1.0)
        state.record("pc", 10, 3.0)
    state.record = lambda *_: None
    start, ends = Softmax().weights, []
    for seed, count in ((0, 6), (1, 2)):
        ends.append((start - train_on_all(count, [shard(seed)])) / count)
    for thread in run.start_all():
        np.testing.assert_allclose(thread.end(), start - 4 * (ends[0] + ends[1]) / 2, rtol=1e-4, atol=1e-5)


def test_the_last_round_makes_at_most_as_many_steps_too_many_as_there_are_members(tmp_path):
    run = PeerRun(tmp_path, "local-sgd:local=steps:every=7", 50, 3)
    for thread in run.start_all():
        thread.end()
    assert run.account().done == 50
    assert 50 <= sum(member.steps for member in run.account().workers.values()) < 53


def test_a_stopped_run_goes_on_with_the_same_bits(tmp_path):
    text = "diloco:local=steps:every=5,outer=nesterov:momentum=0.4"
    whole = PeerRun(tmp_path, text, 80, 2, momentum=0.5)
    expected = [thread.end() for thread in whole.start_all()]
    (tmp_path / "half").mkdir()
    half = PeerRun(tmp_path / "half", text, 40, 2, momentum=0.5)
    for thread in half.start_all():
        thread.end()
    half.account()
    path = half.spec.checkpoints.path
    rest = PeerRun(tmp_path / "half", text, 80, 2, momentum=0.5, resume=path)
    for thread, weights in zip(rest.start_all(skip=20), expected, strict=True):
        np.testing.assert_array_equal(thread.end(), weights)


def test_a_stop_ends_long_rounds_and_costs_no_more_than_these(tmp_path):
    run = PeerRun(tmp_path, "diloco:local=steps:every=1000000,after=20", 10_000_000, 2)
    threads = run.start_all()
    run.await_steps(20)
    run.stopping.set()
    weights = [thread.end() for thread in threads]
    np.testing.assert_array_equal(weights[0], weights[1])
    account = run.account()
    assert not account.finished
    np.testing.assert_array_equal(run.saved().weights, weights[0])
    assert run.saved().meta["step"] == 20


def test_a_checkpoint_during_the_run_has_all_that_is_kept(tmp_path):
    run = PeerRun(tmp_path, "diloco:local=steps:every=5", 40, 2, momentum=0.5, checkpoint_every=10)
    for thread in run.start_all():
        thread.end()
    saved = run.saved()
    assert {*saved.slots} == {"momentum"}
    assert {*saved.member_states} >= {"nano/inner", "pc/inner"}


def test_a_death_within_a_round_costs_the_others_nothing(tmp_path):
    run = PeerRun(tmp_path, "local-sgd:local=steps:every=5,aggregation=samples", 90, 3)
    threads = run.start_all()
    run.await_steps(15)
    threads[2].cut()
    run.await_event(Dropped)
    weights = [thread.end() for thread in threads[:2]]
    np.testing.assert_array_equal(weights[0], weights[1])
    made = sum(thread.batches.order.position // BATCH for thread in threads[:2])
    counted = {name: member.steps for name, member in run.account().workers.items()}
    # One of them may have ended the round that the other could not; nobody computes a round twice.
    assert 0 <= made - counted["nano"] - counted["pc"] <= 5


def test_eager_members_exchange_during_the_next_round(tmp_path):
    text = "local-sgd:topology=all,sync=bounded:staleness=1,local=steps:every=5"
    run = PeerRun(tmp_path, text, 600, 3, evaluate_every=200)
    for thread in run.start_all():
        thread.end()
    assert run.account().evaluations[-1].metrics[ACCURACY] > 0.8


@pytest.mark.parametrize("framework", [pytest.param("torch", marks=computes_with("torch"))])
def test_batch_statistics_are_averaged_and_take_no_outer_step(tmp_path, framework):
    run = PeerRun(tmp_path, "diloco:topology=all,local=steps:every=4,outer=nesterov:momentum=0.9", 24, 2)
    replicas = [small_replica(framework, NORMALISED) for _ in range(2)]
    threads = [run.start(seed, replica=replica) for seed, replica in enumerate(replicas)]
    for thread in threads:
        thread.end()
    variance = next(each for each in replicas[0].state_variables if "var" in each.name)
    states = [replica.state[variance.part] for replica in replicas]
    assert (states[0] > 0).all()
    np.testing.assert_allclose(states[0], states[1], rtol=1e-6)


def test_a_state_larger_than_the_weights_stays_where_it_is(tmp_path):
    """Such as a frozen part of a model."""
    run = PeerRun(tmp_path, "diloco:local=steps:every=3", 24, 2)
    replicas = [Softmax() for _ in range(2)]
    for replica in replicas:
        replica.state = np.zeros(replica.weights.size + 1, np.float32)
        replica.state_variables = (Variable("frozen", replica.state.shape, 0, replica.state.size),)
        replica.gradient = lambda *args, of=replica, **options: _without_state(of, *args, **options)
    threads = [run.start(seed, replica=replica) for seed, replica in enumerate(replicas)]
    weights = [thread.end() for thread in threads]
    np.testing.assert_array_equal(weights[0], weights[1])


def _without_state(replica, *args, **options):
    state, replica.state = replica.state, np.zeros(2, np.float32)
    try:
        return Softmax.gradient(replica, *args, **options)
    finally:
        replica.state = state
