"""Who sends whom how much, by the topologies' own account."""

import numpy as np
import pytest

from backends.strategies.topologies.registry import TopologySpec
from planner.predict import traffic


def of(text: str, n: int) -> traffic.Traffic:
    return traffic.of(TopologySpec.from_text(text), n)


@pytest.mark.parametrize(("topology", "sent"), [("all", 3.0), ("ring", 1.5), ("random", 1.0), ("exponential", 1.0)])
def test_everyone_sends_and_receives_what_the_topology_says(topology: str, sent: float) -> None:
    load = of(topology, 4)
    assert load.shares[0].sum(axis=1) == pytest.approx(np.full(4, sent))
    assert load.shares[0].sum(axis=0) == pytest.approx(np.full(4, sent))


def test_only_the_messages_of_a_ring_wait_for_one_another() -> None:
    assert [phase.chained for phase in of("ring", 4).phases] == [6]
    assert [phase.chained for phase in of("all", 4).phases] == [0]
    assert [phase.chained for phase in of("groups:count=2,between=ring", 4).phases] == [0, 2, 0]


def test_even_ranks_ask_odd_ones_and_are_answered() -> None:
    load = of("pairs", 4)
    assert load.answers
    assert load.shares[0].sum(axis=1) == pytest.approx([1, 0, 1, 0])
    assert load.shares[0].sum(axis=0).sum() == pytest.approx(2) and load.shares[0].sum(axis=0)[::2] == pytest.approx(
        [0, 0]
    )


def test_groups_send_up_among_leaders_and_back() -> None:
    up, among, back = (phase.shares[0] for phase in of("groups:count=2,between=exponential", 4).phases)
    assert up[0].tolist() == back[0].T.tolist() == [[0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0]]
    assert (among.sum(axis=0) > 0).tolist() == [[0, 0, 1, 0], [0] * 4, [1, 0, 0, 0], [0] * 4]
    assert len(of("groups:count=1", 3).phases) == 2


def test_parts_of_messages() -> None:
    half = of("all", 3).scaled(np.full((1, 3, 3), 0.5))
    assert half.shares[0].sum(axis=1) == pytest.approx(np.full(3, 1.0))


def test_one_alone_has_nobody() -> None:
    assert of("all", 1).shares[0].sum(axis=1).tolist() == [0.0]
