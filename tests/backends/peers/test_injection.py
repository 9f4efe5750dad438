"""Peers give samples to one another directly, over the connections of their gradients."""

import pytest

from backends.strategies.data_injection import sharers
from tests.backends.fakes import BATCH, CLASSES
from tests.backends.injected_batches import LabelBatches
from tests.backends.peer_run import NAMES, PeerRun
from tests.running import until

MEMBERS = NAMES[:CLASSES]
STEPS = 8


def trained(folder, text, inject="alpha=1,beta=0.5", steps=STEPS * CLASSES, **changes):
    """The run, and the batches of each peer by name."""
    run = PeerRun(folder, text, steps, CLASSES, inject=inject, **changes)
    batches = {name: LabelBatches(label) for label, name in enumerate(MEMBERS)}
    peers = [run.start(seed, batches=batches[name]) for seed, name in enumerate(MEMBERS)]
    for peer in peers:
        peer.end()
    assert run.account().finished
    return run, batches


def told(batches):
    return {name: each.injection.statistics() for name, each in batches.items()}


def test_batches_stay_as_large_as_they_are_and_have_samples_of_all_others(tmp_path):
    _, batches = trained(tmp_path, "baseline")
    for each in batches.values():
        assert len(each.seen) == STEPS and all(sum(seen) == BATCH for seen in each.seen)
        assert min(map(sum, zip(*each.seen, strict=True))) > 0


def test_those_give_whose_turn_it_is_and_their_samples_go_to_each_of_the_others(tmp_path):
    _, batches = trained(tmp_path, "baseline", "alpha=0.4,beta=1", seed=5)
    figures = told(batches)
    for name, each in batches.items():
        assert [share is not None for share in each.asked] == [
            name in sharers(MEMBERS, 0.4, 5, step) for step in range(STEPS)
        ]
        mine, others = figures[name], [other for other in MEMBERS if other != name]
        shared = sum(share.samples for share in each.asked if share is not None)
        assert mine.shared <= shared  # a batch has few own samples after one that took in many
        assert mine.shared_with == (dict.fromkeys(others, mine.shared) if mine.shared else {})
        assert mine.sent_bytes == 2 * mine.shared * each.injection._codec.sample_bytes
        assert mine.received == sum(figures[other].shared for other in others)


@pytest.mark.parametrize(
    "text", ["allreduce", "scadles:batching=fixed,aggregation=mean", "crossover", "local-sgd", "sgp"]
)
def test_samples_reach_all_others_whatever_way_the_gradients_go(tmp_path, text):
    _, batches = trained(tmp_path, text)
    figures = told(batches)
    for name, mine in figures.items():
        assert mine.shared > 0
        others = [each.shared_with[name] for other, each in figures.items() if other != name]
        assert 0 < mine.received <= sum(others)
        assert mine.malformed == 0


@pytest.mark.parametrize("text", ["ako", "ad-psgd"])
def test_peers_that_do_not_wait_for_one_another_give_too(tmp_path, text):
    _, batches = trained(tmp_path, text)
    figures = told(batches).values()
    given = [sum(each.shared_with.values()) for each in figures]
    assert sum(each.received for each in figures) <= sum(given)
    assert sum(given) == 2 * sum(each.shared for each in figures) > 0


def test_one_that_comes_back_takes_part_again(tmp_path):
    run = PeerRun(tmp_path, "baseline", 10**6, 2, inject="alpha=1,beta=0.5")
    stays = run.start(0, batches=LabelBatches(0))
    goes = run.start(1, batches=LabelBatches(1))
    run.await_steps(20)
    goes.cut()
    run.await_steps(60)
    back = run.start(1, batches=LabelBatches(1))
    injection = back.batches.injection
    until(lambda: injection.statistics().received > 0, lambda: "it is given nothing")
    run.stopping.set()
    assert run.account().reason == "stopped"
    for peer in (stays, back):
        peer.await_end()
