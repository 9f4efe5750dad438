"""An all-reduce takes the time of its busiest link and of its hops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.predict.kinds.collectives import GLOO, NCCL, Network, all_reduce_s, ring, two_trees

MEMBERS = st.integers(2, 40)
SIZES = st.floats(1.0, 1e9)
RATES = st.floats(1e5, 1e10)


def network(n: int, bytes_per_s: float = 1e8, latency_s: float = 0.0) -> Network:
    each = np.full(n, bytes_per_s)
    return Network(np.full((n, n), bytes_per_s), each, each, np.full((n, n), latency_s))


def test_two_members_of_a_ring_send_each_other_half_of_the_message_twice() -> None:
    assert all_reduce_s(GLOO, network(2, 1e8, 0.001), 1e8) == pytest.approx(1.0 + 2 * 0.001)


def test_four_members_of_a_ring_send_one_and_a_half_messages_each_in_six_hops() -> None:
    assert all_reduce_s(GLOO, network(4, 1e8, 0.001), 1e8) == pytest.approx(1.5 + 6 * 0.001)


def test_the_tree_of_four_is_that_of_nccl() -> None:
    """0 above 2, which is above 1 and 3; and 3 above 1, which is above 2 and 0."""
    up = {(2, 0), (1, 2), (3, 2), (1, 3), (0, 1), (2, 1)}
    wanted = np.zeros((4, 4))
    for child, parent in up:
        wanted[child, parent] += 0.5
        wanted[parent, child] += 0.5
    assert np.array_equal(two_trees(4).shares, wanted)
    assert two_trees(4).hops == 4


def test_nccl_reduces_small_messages_along_trees_and_large_ones_around_the_ring() -> None:
    small, large = NCCL.tree_below_bytes - 1.0, NCCL.tree_below_bytes
    assert all_reduce_s(NCCL, network(4, 1e8), small) == pytest.approx(2 * small / 1e8 + 4 * NCCL.hop_s)
    assert all_reduce_s(NCCL, network(4, 1e8), large) == pytest.approx(1.5 * large / 1e8 + 6 * NCCL.hop_s)


def test_a_member_alone_reduces_nothing() -> None:
    assert all_reduce_s(GLOO, network(1), 1e8) == all_reduce_s(NCCL, network(1), 1e8) == 0.0


def test_the_slowest_link_of_a_ring_holds_all() -> None:
    links = network(3, 1e8)
    links.bytes_per_s[1, 2] = 1e7
    assert all_reduce_s(GLOO, links, 3e7) == pytest.approx(4.0)
    links.bytes_per_s[1, 2], links.bytes_per_s[2, 1] = 1e8, 1e7  # no ring goes that way
    assert all_reduce_s(GLOO, links, 3e7) == pytest.approx(0.4)


def test_a_link_that_was_not_measured_never_carries_a_message() -> None:
    links = network(2)
    links.latency_s[0, 1] = np.inf
    assert all_reduce_s(GLOO, links, 1e6) == np.inf


def test_what_a_member_sends_to_several_shares_its_link() -> None:
    links = network(4, 1e8)
    slow = links._replace(out_bytes_per_s=np.array([1e8, 1e8, 2e7, 1e8]))
    assert all_reduce_s(NCCL, slow, 1e7) == pytest.approx(2 * 1e7 / 2e7 + 4 * NCCL.hop_s)


@given(MEMBERS)
def test_every_member_gets_and_gives_at_least_what_any_all_reduce_must(n: int) -> None:
    least = 2 * (n - 1) / n
    for shares in (ring(n).shares, two_trees(n).shares):
        assert shares.sum() == pytest.approx(n * least)  # what the sum of n messages, for all, takes
        assert shares.sum(axis=1).max() >= least - 1e-9
        assert shares.sum(axis=0).max() >= least - 1e-9
        assert np.trace(shares) == 0.0


@given(MEMBERS)
def test_trees_are_as_deep_as_the_logarithm_of_their_members(n: int) -> None:
    assert two_trees(n).hops <= 2 * np.ceil(np.log2(n))


@given(MEMBERS, SIZES, RATES)
def test_no_all_reduce_is_faster_than_the_ring_limit(n: int, message_bytes: float, rate: float) -> None:
    limit_s = 2 * (n - 1) / n * message_bytes / rate
    for transport in (GLOO, NCCL):
        assert all_reduce_s(transport, network(n, rate), message_bytes) >= limit_s * (1 - 1e-9)


@given(MEMBERS, SIZES, RATES, st.floats(1.0, 10.0))
def test_more_bytes_or_a_slower_link_never_take_less_time(n: int, size: float, rate: float, factor: float) -> None:
    before_s = all_reduce_s(GLOO, network(n, rate), size)
    assert all_reduce_s(GLOO, network(n, rate), size * factor) >= before_s * (1 - 1e-9)
    assert all_reduce_s(GLOO, network(n, rate / factor), size) >= before_s * (1 - 1e-9)
