"""Workers that exchange among themselves: what a step takes each member of every candidate, and what it sends.

A topology says who sends to whom in a step, and how much; here links, their ends' processors and the gate turn that
into seconds. What is drawn by chance is drawn a few times. Nothing queues anywhere but at its own ends: the conductor
only hands out turns.
"""

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from backends.strategies import topologies
from backends.strategies.topologies import Groups
from backends.strategies.topology import Topology
from planner import exchange
from planner.clusters import Candidates
from planner.costs import Costs

Floats = NDArray[np.float64]

#: Steps that are looked at: more than an exponential graph of any fleet takes to come round.
DRAWN = 8


class Steps(NamedTuple):
    """(C, N) each: seconds of a step, infinite for no member; of them at full load; bytes that are sent in it."""

    cycle_s: Floats
    exchange_s: Floats
    sent_bytes: Floats


class Loads(NamedTuple):
    """What n members send, by rank, as shares of a message: in phases that follow one another, each (steps, n, n)."""

    phases: tuple[Floats, ...]

    @property
    def sent(self) -> Floats:
        """(n,) shares of a message that each sends in a step, on average."""
        total: Floats = sum((phase.mean(axis=0).sum(axis=1) for phase in self.phases), np.zeros(1))
        return total


@functools.lru_cache(maxsize=256)
def loads(topology: str, n: int) -> Loads:
    """The loads of a topology of that name, options included."""
    made = topologies.parse(topology)
    if n == 1:
        return Loads((np.zeros((1, 1, 1)),))
    if isinstance(made, Groups):
        return _grouped(made, n)
    return Loads((np.array([_load(made, n, step) for step in range(DRAWN)]),))


def _load(made: Topology, n: int, step: int) -> Floats:
    load = np.zeros((n, n))
    for rank in range(n):
        to = [peer for part in range(made.segments) for peer in made.sends_to(rank, n, step, part)]
        for peer in to:
            load[rank, peer] += sum(each.messages * each.share for each in made.traffic(rank, n)) / len(to)
    return load + load.T if made.answers else load


def _grouped(made: Groups, n: int) -> Loads:
    """Gradients to the leaders, what leaders do, weights back."""
    up = np.zeros((1, n, n))
    for rank in range(n):
        leader = made.leader(rank, n)
        up[0, rank, leader] = float(leader != rank)
    leaders = sorted({made.leader(rank, n) for rank in range(n)})
    if len(leaders) == 1:
        return Loads((up, up.transpose(0, 2, 1)))
    among = np.zeros((DRAWN, n, n))
    for step in range(DRAWN):
        among[np.ix_([step], leaders, leaders)] = _load(made.between, len(leaders), step)
    return Loads((up, among, up.transpose(0, 2, 1)))


def solve(costs: Costs, candidates: Candidates) -> Steps:
    """Steps of all candidates; their hosts change nothing."""
    found = exchange.strategy(costs.strategy)
    members = candidates.members(len(costs.names))
    shape = members.shape
    result = Steps(np.full(shape, np.inf), np.zeros(shape), np.zeros(shape))
    for mask in np.unique(candidates.masks):
        rows = candidates.masks == mask
        chosen = np.flatnonzero(members[np.argmax(rows)])
        at = np.ix_(rows, chosen)
        cycle_s, exchange_s, sent = _solve_one(costs, found.topology, chosen)
        result.cycle_s[at], result.exchange_s[at], result.sent_bytes[at] = cycle_s, exchange_s, sent
    return result


def _solve_one(costs: Costs, topology: str, chosen: NDArray[np.int64]) -> tuple[Floats, Floats, Floats]:
    """Seconds of a step, exchanging seconds and bytes sent, (n,) each, of one set of members."""
    own_s = (costs.gradient_s + costs.copy_s + costs.service_s)[chosen]
    load = loads(topology, chosen.size)
    link_s = sum((_own_links_s(costs, chosen, phase) for phase in load.phases), np.zeros(chosen.size))
    together_s = float(sum(_own_links_s(costs, chosen, phase, True).max() for phase in load.phases))
    sent_bytes = load.sent * costs.up_bytes
    if exchange.fits_links(costs.strategy):  # it sends what a link takes while the next gradient is computed
        part = min(1.0, float(own_s.max()) / together_s) if together_s else 1.0
        link_s, together_s, sent_bytes = link_s * part, together_s * part, sent_bytes * part
    gate = exchange.gate(costs.strategy)
    if gate.waits_for(chosen.size) > 1:
        cycle_s = np.full(chosen.size, own_s.max() + together_s)
    elif topologies.parse(topology).answers:
        cycle_s = own_s + link_s  # who asks waits for the answer
    else:
        cycle_s = np.maximum(own_s, link_s)
    if np.isfinite(gate.staleness):
        cycle_s = np.full(chosen.size, cycle_s.max())
    return cycle_s, np.minimum(link_s, cycle_s), sent_bytes


def _own_links_s(costs: Costs, chosen: NDArray[np.int64], phase: Floats, slowest: bool = False) -> Floats:
    """(n,) mean seconds that each member's messages of a phase take; or (1,) of the member that takes longest.

    Messages to several peers go at once: as long as the slowest takes, or as all take through the link of one end, or
    its processor.
    """
    around = np.ix_(chosen, chosen)
    alone_s = np.where(np.eye(chosen.size, dtype=bool), 0.0, costs.up_s[around])
    handled_s = (costs.worker_cpu_s / costs.cores[:, None])[around]
    out_s, in_s = costs.up_bytes / costs.out_bytes_per_s[chosen], costs.up_bytes / costs.in_bytes_per_s[chosen]
    alone = np.where(phase > 0, phase * alone_s, 0.0).max(axis=2)
    through = np.maximum(phase.sum(axis=2) * out_s, phase.sum(axis=1) * in_s)
    taken_s = np.maximum(np.maximum(alone, through), (phase * handled_s).sum(axis=2))
    mean: Floats = taken_s.max(axis=1).mean(keepdims=True) if slowest else taken_s.mean(axis=0)
    return mean
