"""All-reduces of torch.distributed take the time of the busiest link and of their hops.

A ring carries 2 (n - 1) / n of a message over each of its links, in 2 (n - 1) transfers that follow
one another. NCCL reduces a smaller message along two binary trees, half of it each: from four
members on a member inside both carries 2 messages, but fewer transfers follow one another.
"""

import functools
from typing import NamedTuple

import numpy as np

from planner.arrays import Floats


class Collective(NamedTuple):
    """What n members send one another, by rank.

    shares: (n, n) [from, to] of a message.
    hops: transfers that follow one another, until the last member has the first byte of the sum.
    """

    shares: Floats
    hops: int


class Duration(NamedTuple):
    """Seconds of an all-reduce: those of its hops, and those of each byte on the busiest link."""

    hops_s: float
    s_per_byte: float

    def of(self, message_bytes: float) -> float:
        return self.hops_s + self.s_per_byte * message_bytes


class Network(NamedTuple):
    """Links of n members, by rank.

    bytes_per_s: (n, n) [from, to] of a pair while no other is busy; the diagonal is not read.
    out_bytes_per_s, in_bytes_per_s: (n,) of a member's link with all others at once.
    latency_s: (n, n) [from, to] of an empty message, one way; infinite for a link that is unknown.
    """

    bytes_per_s: Floats
    out_bytes_per_s: Floats
    in_bytes_per_s: Floats
    latency_s: Floats


class Transport(NamedTuple):
    """How a backend of torch.distributed moves messages.

    tree_below_bytes: smaller messages go along trees.
    hop_s: seconds that the hosts add to each hop, besides the link's latency.
    """

    tree_below_bytes: int
    hop_s: float


#: gloo has rings only. Its links' latency and processor time are measured, by device.
GLOO = Transport(tree_below_bytes=0, hop_s=0.0)
#: NCCL over TCP, on nodes with a data centre's GPU each (benchmarks/gpu_clusters.py fits and tests
#: it). The size where it leaves trees is not identified: buckets of 25 MiB took them, messages of
#: 118 MiB did not. In a hop a chunk is copied from GPU to host and back, which wakes two threads:
#: 0.1 to 1 ms.
NCCL = Transport(tree_below_bytes=64 << 20, hop_s=0.5e-3)


@functools.lru_cache(maxsize=64)
def ring(n: int) -> Collective:
    """Each member sends to the next one."""
    shares = np.zeros((n, n))
    for rank in range(n if n > 1 else 0):
        shares[rank, (rank + 1) % n] += 2 * (n - 1) / n
    return Collective(shares, 2 * (n - 1))


@functools.lru_cache(maxsize=64)
def gather(n: int) -> Collective:
    """Shares of equal size go around the ring once; a ring that reduces to shares sends as much."""
    return Collective(ring(n).shares / 2, max(0, n - 1))


@functools.lru_cache(maxsize=64)
def all_to_all(n: int) -> Collective:
    """Each member sends each other one its part, all at once."""
    return Collective((1 - np.eye(n)) / n, int(n > 1))


@functools.lru_cache(maxsize=64)
def two_trees(n: int) -> Collective:
    """Half of a message goes up and down each of the two binary trees that NCCL makes."""
    shares = np.zeros((n, n))
    for place in range(1, n):
        above = _parent(place, n)
        for rank, parent in ((place, above), (_other(place, n), _other(above, n))):
            shares[rank, parent] += 0.5
            shares[parent, rank] += 0.5
    depth = max((_depth(place, n) for place in range(n)), default=0)
    return Collective(shares, 2 * depth)


def of_message(transport: Transport, n: int, message_bytes: float) -> Collective:
    """That which a backend chooses for a message among n members."""
    return two_trees(n) if message_bytes < transport.tree_below_bytes else ring(n)


def duration(transport: Transport, network: Network, made: Collective) -> Duration:
    """How long an all-reduce takes that all members begin at once."""
    shares, hops = made
    if not hops:
        return Duration(0.0, 0.0)
    used = shares > 0
    latency_s = np.where(used, network.latency_s, 0.0).max() + transport.hop_s
    pairs = np.divide(shares, network.bytes_per_s, out=np.zeros_like(shares), where=used)
    out, into = shares.sum(axis=1) / network.out_bytes_per_s, shares.sum(axis=0) / network.in_bytes_per_s
    return Duration(float(hops * latency_s), float(max(pairs.max(), out.max(), into.max())))


def all_reduce_s(transport: Transport, network: Network, message_bytes: float) -> float:
    """Seconds of an all-reduce; infinite over an unknown link."""
    made = of_message(transport, network.out_bytes_per_s.size, message_bytes)
    return duration(transport, network, made).of(message_bytes)


def _parent(place: int, n: int) -> int:
    """The place above one, other than 0, in an in-order binary tree whose root is 0."""
    lowest = place & -place
    above = (place ^ lowest) | (lowest << 1)
    return above if above < n else place ^ lowest


def _other(place: int, n: int) -> int:
    """The rank at a place of the second tree: mirrored, or shifted where n is odd.

    An inner node of one tree is a leaf of the other.
    """
    return n - 1 - place if n % 2 == 0 else (place + 1) % n


def _depth(place: int, n: int) -> int:
    return 0 if place == 0 else 1 + _depth(_parent(place, n), n)
