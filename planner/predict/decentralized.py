"""The decentralized model predicts the steps of workers that exchange among themselves.

The topology says which member sends how much to which other in a step (``traffic``); random ones
are averaged over a few draws.

A synchronous step has one or more phases, in which every member sends as soon as it is ready, at
the pace of the slowest gradient of each step (``straggler``). A message that arrives while its
receiver still computes delays it by the processor seconds that it steals. Around a ring each hop
takes what the slowest member needs to receive a message and to send the next. A phase ends for a
member when its messages have left and those for it have arrived; then it adds these up. Messages of
members that are in the next phase already share its link with them. Before the next step every
member that waits for others exchanges a short message with the coordinator.

An asynchronous member sends beside its computation, and the slower of the two sets its rate. The
others send to it at their own rates. The coordinator's orders cost it, and the member that hosts
the coordinator, processor time. Elsewhere they are part of the latency.
"""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.predict import link_budgets, member_costs, traffic
from planner.predict.async_server import MAX_STOLEN_SHARE
from planner.predict.clusters import Candidates
from planner.predict.costs import Costs
from planner.predict.member_costs import MemberCosts
from planner.predict.straggler import paces_of
from planner.predict.traffic import Phase, Traffic

#: Iterations after which the cycles of members that share a link change no more.
ITERATIONS = 10


class Steps(NamedTuple):
    """A step of each member of all candidates, (C, N) each, or of one set of members, (n,) by rank.

    cycle_s: infinite where a device is no member; busy_s: the part of it at full load.
    """

    cycle_s: Floats
    busy_s: Floats
    sent_bytes: Floats


def solve(costs: Costs, candidates: Candidates) -> Steps:
    """Steps of all candidates."""
    members = candidates.members(len(costs.names))
    by_rank = sorted(range(len(costs.names)), key=lambda i: costs.names[i])
    result = Steps(np.full(members.shape, np.inf), *np.zeros((2, *members.shape)))
    masks = np.unique(candidates.masks)
    for mask, pace in zip(masks, paces_of(costs.devices, masks), strict=True):
        ranked = np.array([i for i in by_rank if mask >> i & 1])
        at = np.ix_(candidates.masks == mask, ranked)
        for whole, part in zip(result, _solve_one(costs, ranked, pace), strict=True):
            whole[at] = part
    coordination_s = _coordination_s(costs, candidates, members)
    ordering_s = _ordering_s(costs, candidates, result.cycle_s)
    return result._replace(cycle_s=result.cycle_s + coordination_s + ordering_s, busy_s=result.busy_s + ordering_s)


def _solve_one(costs: Costs, ranked: Ints, pace: float) -> Steps:
    """Steps of one set of members.

    ranked: (n,) their devices, in the order of ranks; pace: as in ``straggler``.
    """
    sync, count = costs.strategy.sync, ranked.size
    whole = traffic.of(costs.strategy.topology, count)
    members = member_costs.of_members(costs, ranked, whole)
    fits = _fits(costs, members, whole) if costs.strategy.compressor.by_link else np.full((count, count), np.inf)
    load = whole.scaled(np.minimum(1.0, fits))
    sent = load.shares.sum(axis=1)
    handled_s = members.handling_s((load.shares + load.shares.T * load.answers)[None])[0]
    hops_s = sum(members.hops_s(*phase).mean(axis=0) for phase in load.phases)
    busy_s = members.ready_s + members.after_s + members.order_s + handled_s + hops_s
    if sync.waits_for(count) > 1:
        cycle_s = _synchronous(members if sync.backups else members.paced(pace), load, not sync.backups)
    elif load.answers:
        requests = load.phases[0].shares.mean(axis=0)
        cycle_s = _pairwise(members, requests)
        sent = sent + (requests / cycle_s[:, None]).sum(axis=0) * cycle_s
    elif np.isfinite(sync.staleness):
        cycle_s = np.full(count, _at_equal_rates(members, load, handled_s).max())
    else:
        cycle_s, busy_s, load = _asynchronous(members, whole, fits)
        sent = load.shares.sum(axis=1)
    return Steps(cycle_s, busy_s, sent * costs.up_bytes)


def _fits(costs: Costs, members: MemberCosts, whole: Traffic) -> Floats:
    """(n, n) messages that a link carries during a gradient of its sender."""
    shares = whole.phases[0].shares
    if costs.strategy.sync.waits_for(members.ready_s.size) > 1:
        return link_budgets.in_turn(members, shares)
    return link_budgets.all_the_time(members, shares)


def _synchronous(costs: MemberCosts, load: Traffic, wait_for_all: bool) -> Floats:
    """(n,) seconds of a step of members that wait for all others, or the first messages to come."""
    begun_s: list[Floats] = []
    # When a phase begins depends on which messages of the next one came early, and these on when
    # it begins. A few passes approximate that.
    for _ in load.phases:
        *begun_s, ended_s = _times(costs, load.phases, wait_for_all, begun_s)
    return np.full(costs.ready_s.size, (ended_s + costs.after_s).max(axis=1).mean())


def _times(costs: MemberCosts, phases: Sequence[Phase], wait_for_all: bool, begun_s: Sequence[Floats]) -> list[Floats]:
    """(steps, n) seconds at which each phase begins for a member, and the last one ends.

    begun_s: of the phases, as far as is known.
    """
    ended_s = costs.ready_s[None, :]
    found = [ended_s]
    for number, (shares, chained) in enumerate(phases):
        sending_s = costs.sending_s(shares)
        if number == 0 and not chained:
            ended_s = ended_s + costs.delay_s(shares, ended_s, sending_s)
        if chained:  # hardly anything passes a member that is not ready
            more = chained - shares.max()  # beyond the latency that sending_s includes
            latency_s = more * np.where(shares > 0, costs.latency_s, 0.0).max()
            hops_s = costs.hops_s(shares, chained).max(axis=1, keepdims=True)
            ended_s = ended_s.max(axis=1, keepdims=True) + latency_s + hops_s + np.zeros_like(costs.ready_s)
        sends_s = ended_s
        ends_s = [ended_s + sending_s.max(axis=2), ended_s + costs.handling_s(shares)]
        if wait_for_all:
            arrives_s = np.where(shares > 0, ended_s[:, :, None] + sending_s, 0.0)
            ends_s += [arrives_s.max(axis=1), costs.backlog_s(shares, ended_s)]
        ended_s = functools.reduce(np.maximum, ends_s)
        if wait_for_all and number + 1 < len(begun_s) and not phases[number + 1].chained:
            early = phases[number + 1].shares, begun_s[number + 1]
            ended_s = ended_s + _early_s(costs, (shares, sends_s), early, ended_s)
        found.append(ended_s)
    return found


def _early_s(costs: MemberCosts, these: tuple[Floats, Floats], early: tuple[Floats, Floats], ended_s: Floats) -> Floats:
    """(steps, n) seconds by which messages of the next phase delay those of this one on a link.

    these, early: of both phases, (steps, n, n) shares and (steps, n) when their senders begin.
    ended_s: (steps, n) when members would end this phase. By equal shares of a link, a message
        delays others by no more than they have left.
    """
    (shares, begun_s), (early_shares, early_s) = these, early
    left_s = ended_s[:, None, :] - early_s[:, :, None]
    early_shares = np.where(left_s > 0, early_shares, 0.0)
    most_s = np.minimum(early_shares * costs.in_s, left_s).clip(0.0).sum(axis=1)
    shape = np.broadcast_shapes(shares.shape, early_shares.shape, (*begun_s.shape, 1))
    both = np.concatenate([np.broadcast_to(each, shape) for each in (shares, early_shares)], axis=1)
    begun_s = np.concatenate([np.broadcast_to(each, shape[:2]) for each in (begun_s, early_s)], axis=1)
    delay_s = np.minimum(most_s, (costs.backlog_s(both, begun_s) - ended_s).clip(0.0))
    return delay_s * (shares.sum(axis=1) > 0)


def _at_equal_rates(costs: MemberCosts, load: Traffic, handled_s: Floats) -> Floats:
    """(n,) seconds of a step of members that send while they compute, if all were as fast."""
    shares = load.phases[0].shares
    links_s = np.maximum(costs.sending_s(shares).max(axis=2), shares.sum(axis=1) * costs.in_s).mean(axis=0)
    return np.maximum(costs.ready_s + costs.after_s + costs.computes * handled_s, links_s)


def _asynchronous(costs: MemberCosts, whole: Traffic, fits: Floats) -> tuple[Floats, Floats, Traffic]:
    """(n,) cycle_s and busy_s of members that send while they compute, and the load.

    Each receives the messages of all others at their own rates, and they slow its computation.
    Where more would arrive than a link carries or a processor takes in, the senders are held back.

    fits: (n, n) messages that a link carries during an undisturbed gradient. A slowed gradient
        leaves room for more, by the factor ``stretch``. The returned load is cut to what fits.
    """
    undisturbed_s = costs.ready_s + costs.service_s + costs.order_s
    received_s = costs.receive_s * costs.computes
    cycle_s, stretch = undisturbed_s, np.ones_like(undisturbed_s)
    for _ in range(ITERATIONS):
        load = whole.scaled(np.minimum(1.0, fits * stretch[:, None]))
        shares = load.phases[0].shares.mean(axis=0)
        outward_s = costs.sending_s(load.phases[0].shares).max(axis=2).mean(axis=0)
        own_s = undisturbed_s + (shares * costs.send_s).sum(axis=1) * costs.computes
        per_s = shares / cycle_s[:, None]
        slowed = (per_s * received_s).sum(axis=0)
        stolen = slowed + (per_s * costs.add_s).sum(axis=0)
        busy_s = own_s / (1 - np.minimum(stolen, MAX_STOLEN_SHARE))
        stretch = own_s / undisturbed_s / (1 - np.minimum(slowed, MAX_STOLEN_SHARE))
        fullest = np.maximum((per_s * costs.in_s).sum(axis=0), stolen / MAX_STOLEN_SHARE)
        held_s = cycle_s * np.where(shares > 0, fullest, 0.0).max(axis=1)
        cycle_s = functools.reduce(np.maximum, (busy_s, outward_s, held_s))
    return cycle_s, busy_s, load


def _pairwise(costs: MemberCosts, requests: Floats) -> Floats:
    """(n,) seconds of a step in which members ask others and wait for their answers.

    A member that is asked computes on while its processor also answers. At its link a request meets
    others as often as they use it. requests: (n, n) how often one asks another in a step.
    """
    own_s, both_ways_s = costs.ready_s + costs.after_s + costs.order_s, costs.alone_s + costs.alone_s.T + costs.after_s
    asks = requests.sum(axis=1) > 0
    cycle_s = own_s
    for _ in range(ITERATIONS):
        used = requests * costs.in_s / cycle_s[:, None]
        met_s = (used.sum(axis=0) - used) * (costs.in_s + costs.out_s)
        cycle_s = own_s + (requests * (both_ways_s + met_s)).sum(axis=1)
    handled_s = np.where(costs.computes, costs.receive_s + costs.send_s.T, 0.0) + costs.after_s
    stolen = (requests / cycle_s[:, None] * handled_s).sum(axis=0)
    return np.where(asks, cycle_s, cycle_s / (1 - np.minimum(stolen, MAX_STOLEN_SHARE)))


def _ordering_s(costs: Costs, candidates: Candidates, cycle_s: Floats) -> Floats:
    """(C, N) seconds that ordering the steps of members who wait for nobody takes from their host.

    cycle_s: (C, N) of all members.
    """
    found = np.zeros_like(cycle_s)
    if np.isfinite(costs.strategy.sync.staleness):
        return found
    at_host = np.arange(candidates.hosts.size), candidates.hosts
    ordered_s = np.diagonal(costs.pairs.order_cpu_s) / costs.devices.cores * (costs.devices.step_cpu_s > 0)
    stolen = np.minimum((1 / cycle_s).sum(axis=1) * ordered_s[candidates.hosts], MAX_STOLEN_SHARE)
    found[at_host] = np.where(np.isfinite(cycle_s[at_host]), cycle_s[at_host] * stolen / (1 - stolen), 0.0)
    return found


def _coordination_s(costs: Costs, candidates: Candidates, members: Bools) -> Floats:
    """(C, N) seconds of a message to the coordinator and back; the slowest where members wait.

    Members that wait for nobody have their next order by then, but not with streams or rounds.
    """
    both_ways_s = np.where(members, (costs.pairs.latency_s + costs.pairs.latency_s.T)[candidates.hosts], 0.0)
    if np.isfinite(costs.strategy.sync.staleness):
        return both_ways_s.max(axis=1, keepdims=True)
    ahead = costs.streams is None and not costs.strategy.local
    return np.zeros_like(both_ways_s) if ahead else both_ways_s
