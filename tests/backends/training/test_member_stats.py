"""Runs of peers: the same weights as one process, whatever the topology; whoever comes, goes or resumes."""

import itertools
import time

import numpy as np
import pytest

from backends.frameworks.base import OptimizerSettings
from backends.peers.exchanges import gradients
from backends.strategies import streams
from backends.strategies.compatibility import PARTS
from backends.strategies.presets import PRESETS
from tests.backends.fakes import Softmax, union, union_with_lars
from tests.backends.peers import Peers, shard
from tests.backends.small import replica
from tests.installed import EACH, MIXED
from tests.running import until

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


@pytest.mark.parametrize("momentum", [0.0, 0.5])
@pytest.mark.parametrize(("text", "members"), WHOLE)
def test_a_synchronous_lossless_run_is_one_process_with_all_batches(tmp_path, text, members, momentum):
    expect_union(tmp_path, text, members, momentum, ("numpy",))


@pytest.mark.parametrize(("text", "members"), [("allreduce", 3), ("crossover", 2)])
@pytest.mark.parametrize("frameworks", [*EACH, MIXED])
def test_so_is_one_of_any_framework_and_of_several(tmp_path, text, members, frameworks):
    expect_union(tmp_path, text, members, 0.5, frameworks)


def expect_union(folder, text, members, momentum, frameworks):
    replicas = map(replica, itertools.cycle(frameworks))
    peers = Peers(folder, text, 8 * members, members, momentum=momentum)
    players = [peers.start(seed, replica=next(replicas)) for seed in range(members)]
    together = union(8, map(shard, range(members)), momentum, replica=replica(frameworks[0]))
    for weights in [player.end() for player in players]:
        np.testing.assert_allclose(weights, together, rtol=1e-4, atol=1e-5)
    account = peers.account()
    assert account["finished"]
    assert {each["steps"] for each in account["workers"].values()} == {8}
    np.testing.assert_allclose(peers.saved().weights, together, rtol=1e-4, atol=1e-5)


def test_by_samples_batches_of_different_sizes_are_one_process_with_all_of_them(tmp_path):
    peers = Peers(tmp_path, "baseline:batching=stream,aggregation=samples", 24, 3, seed=4)
    sizes = streams.batches(streams.draw_rates("S1", 3, 4))
    assert len(set(sizes)) > 1
    players, drawn = peers.all(), [shard(seed) for seed in range(3)]
    for each, size in zip(drawn, sizes, strict=True):
        each.batch = size
    together = union(8, drawn)
    for player in players:
        np.testing.assert_allclose(player.end(), together, rtol=1e-4, atol=1e-5)


def test_lars_scales_the_gradients_that_all_have_merged(tmp_path):
    optimiser = OptimizerSettings(2.0, 0.5, 0.01)
    peers = Peers(tmp_path, "allreduce:optimizer=lars", 16, 2, optimiser=optimiser)
    together = union_with_lars(8, map(shard, range(2)), optimiser)
    for player in peers.all():
        np.testing.assert_allclose(player.end(), together, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ("allreduce:compressor=float16", 2),
        ("allreduce:compressor=float16", 4),
        ("crossover-hierarchical:topology=groups:count=2,between=ring,aggregation=mean,compressor=float16", 4),
        ("crossover-hierarchical:topology=groups:count=2,between=all,aggregation=mean,compressor=float16", 3),
    ],
)
def test_rounded_to_half_of_the_bytes_members_differ_little_from_one_process_and_not_at_all_in_a_group(
    tmp_path, text, members
):
    peers = Peers(tmp_path, text, 40 * members, members, momentum=0.5)
    weights = [player.end() for player in peers.all()]
    assert peers.account()["finished"]
    for each in weights:
        np.testing.assert_allclose(each, union(40, map(shard, range(members)), 0.5), atol=0.002)
    if "all" not in text.partition(":")[2]:  # leaders of groups that send to all round what others get, not their own
        for each in weights[1:]:
            np.testing.assert_array_equal(each, weights[0])


@pytest.mark.parametrize("name", PEERS)
def test_every_preset_learns(tmp_path, name):
    peers = Peers(tmp_path, name, 90, 3, evaluate_every=45, checkpoint_every=30)
    for player in peers.all():
        player.end()
    account = peers.account()
    assert account["finished"]
    assert account["evaluations"][-1]["accuracy"] > 0.8
    assert peers.saved().meta["step"] == 90


@pytest.mark.parametrize("name", PEERS)
def test_one_alone_is_plain_sgd(tmp_path, name):
    text = (
        name + ":compressor=dense" + (",batching=fixed,aggregation=mean" if PRESETS[name].batching != "fixed" else "")
    )
    peers = Peers(tmp_path, text, 10, 1, momentum=0.5)
    (player,) = peers.all()
    np.testing.assert_allclose(player.end(), union(10, [shard(0)], 0.5), rtol=1e-5, atol=1e-6)


#: Every topology, and beside them what waits otherwise, deals out batches or sends by link.
MEMBERS_CHANGE = [
    "baseline", "allreduce", "sgp", "crossover", "crossover-hierarchical", "ad-psgd", "dlion", "hop", "ako", "scadles",
    "allreduce:compressor=float16",
    "crossover-hierarchical:topology=groups:count=2,between=ring,aggregation=mean,compressor=float16",
]  # fmt: skip


def test_members_change_in_every_topology():
    assert {PRESETS[text.partition(":")[0]].topology for text in MEMBERS_CHANGE} == set(PARTS["topology"]) - {"server"}


@pytest.mark.parametrize("text", MEMBERS_CHANGE)
def test_a_member_that_dies_leaves_the_others_a_valid_topology(tmp_path, text):
    peers = Peers(tmp_path, text, 1500, 3, evaluate_every=10_000)
    players = peers.all()
    until(lambda: peers.done >= 60, 20, lambda: "no steps")
    players[1].cut()
    for player in (players[0], players[2]):
        player.end()
    account = peers.account()
    assert account["finished"]
    made = {name: each["steps"] for name, each in account["workers"].items()}
    assert made["pc"] < 500 < made["nano"] + made["tx2"]
    assert account["evaluations"][-1]["accuracy"] > 0.8


@pytest.mark.parametrize("text", MEMBERS_CHANGE)
def test_one_that_joins_begins_with_the_weights_of_the_others(tmp_path, text):
    peers = Peers(tmp_path, text, 1500, 2, momentum=0.5)
    first = [peers.start(0), peers.start(1)]
    until(lambda: peers.done >= 100, 20, lambda: "no steps")
    late = peers.start(2, initial=7)
    weights = [player.end() for player in (*first, late)]
    account = peers.account()
    assert account["finished"]
    assert account["workers"]["tx2"]["steps"] > 10
    assert account["evaluations"][-1]["accuracy"] > 0.8
    if text.startswith(("allreduce", "baseline")):
        for each in weights[1:]:
            np.testing.assert_array_equal(each, weights[0])


@pytest.mark.parametrize("text", MEMBERS_CHANGE)
def test_one_that_dies_and_comes_back_is_a_member_again(tmp_path, text):
    peers = Peers(tmp_path, text, 1500, 3, evaluate_every=10_000)
    players = peers.all()
    until(lambda: peers.done >= 60, 20, lambda: "no steps")
    players[0].cut()
    until(lambda: "nano" in peers.named("dropped"), 20, lambda: "nobody is missed")
    again = peers.start(0, initial=7)
    for player in (again, *players[1:]):
        player.end()
    account = peers.account()
    assert account["finished"]
    assert account["evaluations"][-1]["accuracy"] > 0.8
    assert peers.named("joined").count("nano") == 2
    made = [each["steps"] for each in account["workers"].values()]
    assert min(made) > 60 and sum(made) >= 1500


@pytest.mark.parametrize(
    "text",
    ["baseline", "baseline:compressor=top-k:share=0.1", "allreduce", "crossover:topology=random:segments=2", "gaia"],
)
def test_a_synchronous_run_that_was_stopped_goes_on_as_if_it_had_not_been(tmp_path, text):
    def train(folder, rounds, skip=0, resume=None):
        folder.mkdir()
        peers = Peers(folder, text, 3 * rounds, 3, momentum=0.5, resume=resume)
        weights = [player.end() for player in peers.all(skip=skip)]
        assert peers.account()["finished"]
        return weights

    whole = train(tmp_path / "whole", 9)
    train(tmp_path / "half", 4)
    rest = train(tmp_path / "rest", 9, 4, str(tmp_path / "half" / "checkpoint.npz"))
    for one, other in zip(rest, whole, strict=True):
        np.testing.assert_array_equal(one, other)


def test_batches_follow_a_member_that_is_slower(tmp_path):
    peers = Peers(tmp_path, "dlion", 240, 2, training_samples=10_000)
    slow, quick = peers.start(0, slowdown=20.0), peers.start(1)
    slow.end()
    quick.end()
    assert peers.account()["finished"]
    assert slow.batches.batch < quick.batches.batch


def test_what_a_transfer_may_take_is_what_gradients_take_of_late(tmp_path):
    """A first step that is slow, as first steps are, would have links filled for many steps to come."""

    class Cold(Softmax):
        steps = 0

        def gradient(self, images, labels, **how):
            time.sleep(0.0 if self.steps else 1.0)
            self.steps += 1
            return super().gradient(images, labels, **how)

    peers, budgets = Peers(tmp_path, "dlion:batching=fixed", 12, 2), []
    player, other = peers.start(0, replica=Cold()), peers.start(1)
    step = player.exchange.step
    player.exchange.step = lambda *given: (budgets.append(given[-1]), step(*given))
    player.end()
    other.end()
    assert budgets[0] >= 1.0
    assert len(budgets) == 6 and max(budgets[1:]) < 0.5


def test_a_link_that_has_carried_nothing_gets_little(tmp_path):
    """A whole gradient of a large model would keep a slow link busy for many steps."""
    peers, budgets = Peers(tmp_path, "ako", 6, 2), []
    player = peers.start(0)
    budget = player.exchange._budget
    player.exchange._budget = lambda *given: (budgets.append(budget(*given)), budgets[-1])[1]
    other = peers.start(1)
    player.end()
    other.end()
    # The messages of 39 weights are too small to measure a link by, so that all are like the first.
    assert set(budgets) == {gradients.FIRST_BYTES}


def test_all_messages_of_a_step_are_chosen_before_the_first_goes_out(tmp_path):
    """So that a link is not measured while the others rest, which it will not do when it is used."""
    peers, seen = Peers(tmp_path, "dlion:batching=fixed", 9, 3), []
    player = peers.start(0)
    chooses, sends = player.exchange._for, player.links.send
    player.exchange._for = lambda peer: (seen.append("chosen"), chooses(peer))[1]
    player.links.send = lambda *given, **beside: (seen.append("sent"), sends(*given, **beside))
    others = [peers.start(1), peers.start(2)]
    for each in (player, *others):
        each.end()
    assert seen == 3 * ["chosen", "chosen", "sent", "sent"]


def test_the_best_hands_its_weights_to_the_others(tmp_path):
    def sent(knowledge):
        peers = Peers(tmp_path, "baseline:knowledge=" + knowledge, 660, 3)
        for player in peers.all():
            player.end()
        return sum(each["bytes"] for each in peers.account()["workers"].values())

    # After 100 and 200 of 220 steps the 39 weights go from one to the two others, or to one of them.
    nobody, worst, everyone = (sent(whom) for whom in ("none", "best-to-worst", "best-to-all"))
    assert nobody + 2 * 39 * 4 < worst < everyone


def test_with_the_last_who_has_the_weights_the_run_is_over(tmp_path):
    peers = Peers(tmp_path, "allreduce", 10_000, 1, checkpoint_every=20)
    (only,) = peers.all()
    until(lambda: any("checkpoint" in event for event in peers.events), 20, lambda: "no checkpoint")
    only.cut()
    account = peers.account()
    assert not account["finished"]
    assert account["reason"] == "no member is left that has the weights"
    assert 0 < peers.saved().meta["step"] < 10_000


def test_a_run_that_is_stopped_can_be_gone_on_with(tmp_path):
    peers = Peers(tmp_path, "baseline", 100_000, 3)
    players = peers.all()
    until(lambda: peers.done >= 30, 20, lambda: "no steps")
    peers.stopping.set()
    for player in players:
        player.end()
    account = peers.account()
    assert account["reason"] == "stopped"
    assert peers.saved().meta["step"] == account["done"]


def test_a_member_that_is_frozen_is_left_behind(tmp_path):
    peers = Peers(tmp_path, "allreduce", 1500, 3, heartbeat_s=1.0, evaluate_every=10_000)
    players = peers.all()
    until(lambda: peers.done >= 60, 20, lambda: "no steps")
    players[1].freeze()
    for player in (players[0], players[2]):
        player.end()
    assert peers.account()["finished"]
    assert any("silent" in event for event in peers.events)


def test_weights_that_all_have_alike_are_handed_over_and_kept_once(tmp_path):
    def kept(text):
        peers = Peers(tmp_path, text, 60, 3, checkpoint_every=20, host="pc")
        for player in peers.all():
            player.end()
        assert peers.account()["finished"]
        # One that is due while another is being written is left out.
        assert len([event for event in peers.events if "checkpoint" in event]) >= 2
        return {label for label in peers.saved().kept if label.endswith("own")}

    assert kept("allreduce") == set()
    assert kept("crossover") == {"nano/own", "pc/own", "tx2/own"}


def test_members_whose_initial_weights_differ_begin_with_those_of_one(tmp_path):
    peers = Peers(tmp_path, "allreduce", 9, 3)
    players = [peers.start(seed, initial=seed) for seed in range(3)]
    weights = [player.end() for player in players]
    for each in weights[1:]:
        np.testing.assert_array_equal(each, weights[0])
