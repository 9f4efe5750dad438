"""Two levels: what all have computed comes to all, by way of the groups' leaders."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from backends.strategies.topologies.groups import group_of, leaders, split
from backends.strategies.topologies.registry import SERVER, TopologySpec


def test_five_in_two_groups():
    assert [list(group) for group in split(5, 2)] == [[0, 1], [2, 3, 4]]
    assert leaders(5, 2) == (0, 2)
    assert [list(group_of(rank, 5, 2)) for rank in (1, 2)] == [[0, 1], [2, 3, 4]]


def test_where_there_are_fewer_workers_than_groups_each_leads_itself():
    assert leaders(3, 8) == (0, 1, 2)
    assert [list(group) for group in split(1, 2)] == [[0]]


def test_one_that_leaves_moves_the_borders():
    assert leaders(6, 3) == (0, 2, 4)
    assert leaders(5, 3) == (0, 1, 3)


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
