"""Who sends to whom: whoever leaves or joins, the graph is valid and its traffic is as stated."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from backends.strategies.topologies.base import SERVER, MessageLoad
from backends.strategies.topologies.registry import TOPOLOGIES, TopologySpec, group_of, split

SPECS = (
    "server",
    "all",
    "ring",
    "exponential",
    "random",
    "random:segments=1",
    "pairs",
    "groups",
    "groups:count=3,between=all",
    "groups:between=server",
    "groups:count=4,between=exponential",
    "groups:count=3,between=random:segments=3",
)

#: In which every message is as large as the segment that it is of, and everyone sends as much.
EVEN = [spec for spec in SPECS if spec not in ("ring", "pairs")]


def nodes(spec, n):
    return [SERVER, *range(n)] if "server" in spec else list(range(n))


def test_every_kind_is_tested():
    assert {spec.partition(":")[0] for spec in SPECS} == set(TOPOLOGIES)


@settings(max_examples=200, deadline=None)
@given(spec=some.sampled_from(SPECS), n=some.integers(1, 9), step=some.integers(0, 30), seed=some.integers(0, 5))
def test_whoever_is_sent_to_receives_and_nobody_is_sent_to_by_itself(spec, n, step, seed):
    topology = TopologySpec.from_text(spec).build(seed)
    for segment in range(topology.segments):
        sent = {(a, b) for a in nodes(spec, n) for b in topology.sends_to(a, n, step, segment)}
        received = {(a, b) for b in nodes(spec, n) for a in topology.receives_from(b, n, step, segment)}
        assert sent == received
        assert all(a != b and b in nodes(spec, n) for a, b in sent)


@settings(max_examples=200, deadline=None)
@given(spec=some.sampled_from(EVEN), n=some.integers(1, 9), step=some.integers(0, 9))
def test_traffic_is_what_is_sent_and_as_much_is_received(spec, n, step):
    topology = TopologySpec.from_text(spec).build()
    for rank in range(n):
        up_and_down = len(topology.followers(rank, n)) + (topology.leader(rank, n) != rank)
        for ask in (topology.sends_to, topology.receives_from):
            across = sum(len(ask(rank, n, step, segment)) for segment in range(topology.segments))
            told = topology.traffic(rank, n)
            assert sum(part.messages for part in told) == up_and_down + across
            vectors = up_and_down + across / topology.segments
            assert sum(part.messages * part.share for part in told) == pytest.approx(vectors)


@pytest.mark.parametrize("n", range(2, 9))
def test_who_asks_is_never_asked_and_answers_are_counted(n):
    pairs = TopologySpec.from_text("pairs").build(3)
    for step in range(20):
        asked = [pairs.sends_to(rank, n, step) for rank in range(n)]
        assert all(len(to) == (rank % 2 == 0) and all(other % 2 for other in to) for rank, to in enumerate(asked))
    answers = sum(pairs.traffic(rank, n)[0].share for rank in range(1, n, 2))
    assert answers == sum(pairs.traffic(rank, n)[0].share for rank in range(0, n, 2))


@pytest.mark.parametrize("spec", SPECS)
def test_one_alone_has_nobody_but_the_server(spec):
    topology = TopologySpec.from_text(spec).build()
    assert topology.sends_to(0, 1, 5) == ((SERVER,) if "server" in spec else ())
    assert topology.leader(0, 1) == 0
    assert topology.followers(0, 1) == ()


def test_the_last_of_a_ring_sends_to_the_first():
    ring = TopologySpec.from_text("ring").build()
    assert ring.sends_to(3, 4, 0) == (0,)
    assert ring.receives_from(0, 4, 0) == (3,)
    assert ring.traffic(0, 4) == (MessageLoad(6, 0.25),)


def test_exponential_hops_grow_from_step_to_step():
    graph = TopologySpec.from_text("exponential").build()
    assert [graph.sends_to(6, 8, step) for step in range(4)] == [(7,), (0,), (2,), (7,)]
    assert [graph.receives_from(0, 8, step) for step in range(3)] == [(7,), (6,), (4,)]
    assert graph.traffic(0, 8) == (MessageLoad(1, 1.0),)


def test_random_segments_go_different_ways_by_seed_step_and_segment():
    graph = TopologySpec.from_text("random:segments=8").build(1)
    assert graph.segments == 8
    assert graph.traffic(0, 6) == (MessageLoad(8, 0.125),)
    assert len({graph.sends_to(0, 6, 0, segment) for segment in range(8)}) > 1
    assert len({graph.sends_to(0, 6, step) for step in range(20)}) > 1
    assert len({TopologySpec.from_text("random").build(seed).sends_to(0, 6, 0) for seed in range(20)}) > 1
    assert TopologySpec.from_text("random:segments=8").build(1).sends_to(0, 6, 3, 2) == graph.sends_to(0, 6, 3, 2)


def test_of_groups_the_leaders_alone_exchange():
    groups = TopologySpec.from_text("groups:count=2,between=all").build()
    assert [groups.leader(rank, 5) for rank in range(5)] == [0, 0, 2, 2, 2]
    assert [groups.followers(rank, 5) for rank in range(5)] == [(1,), (), (3, 4), (), ()]
    assert [groups.sends_to(rank, 5, 0) for rank in range(5)] == [(2,), (), (0,), (), ()]
    assert groups.traffic(1, 5) == (MessageLoad(1, 1.0),)
    assert groups.traffic(2, 5) == (MessageLoad(2, 1.0), MessageLoad(1, 1.0))


def test_a_server_between_leaders_hears_from_them_alone():
    groups = TopologySpec.from_text("groups:count=2,between=server").build()
    assert groups.receives_from(SERVER, 5, 0) == (0, 2)
    assert groups.sends_to(2, 5, 0) == (SERVER,)
    assert groups.traffic(SERVER, 5) == (MessageLoad(2, 1.0),)


def test_segments_of_groups_are_those_of_the_leaders_gossip():
    groups = TopologySpec.from_text("groups:count=3,between=random:segments=5").build(3)
    assert groups.segments == 5
    assert groups.traffic(0, 6) == (MessageLoad(1, 1.0), MessageLoad(5, 0.2))
    among = TopologySpec.from_text("random:segments=5").build(3)
    assert groups.sends_to(2, 6, 4, 1) == tuple(2 * place for place in among.sends_to(1, 3, 4, 1))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("mesh", "unknown topology 'mesh'; known: server, all, ring, exponential, random, pairs, groups"),
        ("all:segments=2", "with a key of none"),
        ("random:size=2", "'size=2' is not key=value with a key of segments"),
        ("random:segments=2,segments=3", "given twice"),
        ("random:segments=many", "segments is a whole number, not 'many'"),
        ("random:segments=0", "segments=0: there must be at least 1"),
        ("groups:count=0", "count=0: there must be at least 1 group"),
        ("groups:between=mesh", "unknown topology 'mesh'"),
        ("groups:between=groups", "no groups of groups"),
    ],
)
def test_what_does_not_fit_is_named_with_what_does(text, says):
    with pytest.raises(ValueError, match=says):
        TopologySpec.from_text(text).build()


@given(n=some.integers(1, 40), count=some.integers(1, 12))
def test_everyone_is_in_one_group_and_all_are_about_as_great(n, count):
    groups = split(n, count)
    assert [rank for group in groups for rank in group] == list(range(n))
    assert len(groups) == min(n, count)
    sizes = {len(group) for group in groups}
    assert min(sizes) >= 1
    assert max(sizes) - min(sizes) <= 1
    assert all(rank in group_of(rank, n, count) for rank in range(n))


def exchanged(topology, values):
    """What each rank has after an exchange.

    Leaders sum their groups' values, send these sums to each other or through the server, and send
    the total back.
    """
    n = len(values)
    reduced = {rank: values[rank] + sum(values[other] for other in topology.followers(rank, n)) for rank in range(n)}
    reduced = {rank: reduced[rank] for rank in range(n) if topology.leader(rank, n) == rank}
    reduced[SERVER] = sum(reduced[rank] for rank in topology.receives_from(SERVER, n, 0))
    total = {}
    for rank in range(n):
        sources = topology.receives_from(rank, n, 0)
        own = 0 if SERVER in sources else reduced.get(rank, 0)
        total[rank] = own + sum(reduced[source] for source in sources)
    return [total[topology.leader(rank, n)] for rank in range(n)]


@pytest.mark.parametrize("between", ["all", "server"])
@given(values=some.lists(some.integers(-100, 100), min_size=1, max_size=12), count=some.integers(1, 5))
def test_summed_between_all_leaders_everyone_has_what_one_process_would_have(between, values, count):
    topology = TopologySpec.from_text(f"groups:count={count},between={between}").build()
    assert exchanged(topology, values) == [sum(values)] * len(values)
