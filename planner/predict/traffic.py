"""Traffic is what the members of a run send one another in a step, as their topology says."""

import functools
from typing import NamedTuple

import numpy as np

from backends.strategies.topologies.base import Topology
from backends.strategies.topologies.graphs import Ring
from backends.strategies.topologies.registry import GroupedTopology, TopologySpec
from planner.arrays import Floats

#: Steps that are averaged: more than an exponential graph of any fleet has.
STEPS = 8


class Phase(NamedTuple):
    """Messages that may all be on their way at once.

    shares: (M, steps, n, n) [from, to], of a whole message, of M sets of n members; (1, ...) for
        all alike.
    chained: messages that follow one another around a ring, each after the one before; else 0.
    """

    shares: Floats
    chained: int = 0


class Traffic(NamedTuple):
    """What n members send, by rank, in phases that follow one another.

    answers: whether each message is answered by one of its size, which the phases leave out.
    """

    phases: tuple[Phase, ...]
    answers: bool = False

    @property
    def shares(self) -> Floats:
        """(M, n, n) [from, to] shares of a message in a step, on average, answers left out."""
        return np.sum([phase.shares.mean(axis=1) for phase in self.phases], axis=0)

    def scaled(self, part: Floats) -> "Traffic":
        """The same traffic with only a part of each message, (M, n, n)."""
        return self._replace(phases=tuple(each._replace(shares=each.shares * part[:, None]) for each in self.phases))


@functools.lru_cache(maxsize=256)
def of(topology: TopologySpec, n: int) -> Traffic:
    """The traffic of a topology among n members."""
    made = topology.build()
    if n == 1:
        return Traffic((Phase(np.zeros((1, 1, 1, 1))),))
    if isinstance(made, GroupedTopology):
        return Traffic(_grouped(made, n))
    return Traffic((_phase(made, n),), made.answers)


def _phase(made: Topology, n: int) -> Phase:
    shares = np.zeros((1, STEPS, n, n))
    for step, rank in np.ndindex(STEPS, n):
        to = [peer for part in range(made.segments) for peer in made.sends_to(rank, n, step, part)]
        for peer in to:
            shares[0, step, rank, peer] += sum(each.messages * each.share for each in made.traffic(rank, n)) / len(to)
    return Phase(shares, 2 * (n - 1) if isinstance(made, Ring) else 0)


def _grouped(made: GroupedTopology, n: int) -> tuple[Phase, ...]:
    """The phases of groups: gradients to the leaders, the leaders' exchange, weights back."""
    up = np.zeros((1, 1, n, n))
    for rank in range(n):
        leader = made.leader(rank, n)
        up[0, 0, rank, leader] = float(leader != rank)
    leaders = np.unique([made.leader(rank, n) for rank in range(n)])
    there, back = Phase(up), Phase(up.transpose(0, 1, 3, 2))
    if leaders.size == 1:
        return there, back
    among = _phase(made.between, leaders.size)
    shares = np.zeros((1, STEPS, n, n))
    shares[np.ix_(np.zeros(1, np.int64), np.arange(STEPS), leaders, leaders)] = among.shares
    return there, among._replace(shares=shares), back
