"""Workers that exchange among themselves: what a step takes each member of every candidate, and what it sends.

A topology says who sends to whom in a step, and how much (``loads``); here that, what members compute and how they go
on become seconds. What is drawn by chance is drawn a few times.

Who waits for others: a step has one or more phases, in each of which all send as soon as they are ready for it. What
comes to a member that still computes on its own processor delays it by what taking it in takes from the computation. A
member is through when all it sends has left and all that is meant for it has come; then it adds that up. The conductor
has everyone's word, and everyone its, before the next step begins. Without waiting, sending goes on beside computing,
and the slower of the two sets the pace; what comes to each is what the others send at paces of their own.
"""

import functools
from typing import NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.predict import traffic
from planner.predict.clusters import Candidates
from planner.predict.costs import Costs
from planner.predict.traffic import Traffic

#: Rounds after which the cycles of those who meet at a link change no more.
SETTLED = 10
#: No more of a processor than this goes to those who ask.
MOST_TAKEN = 0.9


class Steps(NamedTuple):
    """(C, N) each: seconds of a step, infinite for no member; of them at full load; bytes that are sent in it."""

    cycle_s: Floats
    busy_s: Floats
    sent_bytes: Floats


class Members(NamedTuple):
    """The costs of n members among themselves: (n,), and (n, n) [from, to] of a whole message.

    ready_s: of a step, until a member begins to send; service_s: of its update; add_s: to add up one message; after_s:
    both, of a step that all others make as well; computes: whether its processor does, so that transfers hold that up.
    """

    ready_s: Floats
    gradient_s: Floats
    service_s: Floats
    add_s: Floats
    after_s: Floats
    computes: Bools
    out_s: Floats
    in_s: Floats
    alone_s: Floats
    latency_s: Floats
    send_s: Floats
    receive_s: Floats


def solve(costs: Costs, candidates: Candidates) -> Steps:
    """Steps of all candidates."""
    members = candidates.members(len(costs.names))
    by_rank = sorted(range(len(costs.names)), key=lambda i: costs.names[i])
    shape = members.shape
    result = Steps(np.full(shape, np.inf), np.zeros(shape), np.zeros(shape))
    for mask in np.unique(candidates.masks):
        rows = candidates.masks == mask
        chosen = np.array([i for i in by_rank if mask >> i & 1])
        at = np.ix_(rows, chosen)
        result.cycle_s[at], result.busy_s[at], result.sent_bytes[at] = _solve_one(costs, chosen)
    return result._replace(cycle_s=result.cycle_s + _turn_s(costs, candidates, members))


def _solve_one(costs: Costs, chosen: Ints) -> tuple[Floats, Floats, Floats]:
    """Seconds of a step, those at full load, and bytes sent, (n,) each, of one set of members in the order of ranks."""
    sync = costs.strategy.sync
    whole = traffic.of(costs.strategy.topology, chosen.size)
    one = _members(costs, chosen, whole)
    fitted = costs.strategy.compressor.by_link
    fits = _fits(one, whole.phases[0].shares) if fitted else np.full((chosen.size, chosen.size), np.inf)
    load = whole.scaled(np.minimum(1.0, fits))
    handled_s, sent = _handled_s(one, load), load.sent
    busy_s = one.ready_s + one.after_s + handled_s
    if sync.waits_for(chosen.size) > 1:
        cycle_s = _in_step(one, load, sync.backups == 0)
    elif load.answers:
        asks = load.phases[0].shares.mean(axis=0)
        cycle_s = _asking(one, asks)
        sent = sent + (asks / cycle_s[:, None]).sum(axis=0) * cycle_s
    elif np.isfinite(sync.staleness):
        cycle_s = np.full(chosen.size, _at_one_pace(one, load, handled_s).max())
    else:
        cycle_s, busy_s, load = _at_once(one, whole, fits)
        sent = load.sent
    return cycle_s, busy_s, sent * costs.up_bytes


def _members(costs: Costs, chosen: Ints, load: Traffic) -> Members:
    around = np.ix_(chosen, chosen)
    apart = ~np.eye(chosen.size, dtype=bool)
    gradient_s = costs.devices.gradient_s[chosen]
    messages = chosen.size - 1 if costs.strategy.compressor.by_link else 1  # each link has a sender of its own
    return Members(
        ready_s=gradient_s + (costs.devices.copy_s + messages * costs.devices.encode_s)[chosen],
        gradient_s=gradient_s,
        service_s=costs.devices.service_s[chosen],
        add_s=costs.devices.add_s[chosen],
        after_s=costs.devices.service_s[chosen] + load.received * costs.devices.add_s[chosen],
        computes=costs.devices.step_cpu_s[chosen] > 0,
        out_s=costs.up_bytes / costs.devices.out_bytes_per_s[chosen],
        in_s=costs.up_bytes / costs.devices.in_bytes_per_s[chosen],
        alone_s=np.where(apart, costs.pairs.up_s[around], 0.0),
        latency_s=np.where(apart, costs.pairs.latency_s[around], 0.0),
        send_s=costs.pairs.send_stolen_cpu_s[around] / costs.devices.cores[chosen, None],
        receive_s=costs.pairs.receive_stolen_cpu_s[around] / costs.devices.cores[None, chosen],
    )


def _taking_s(one: Members, shares: Floats) -> Floats:
    """(steps, n, n) seconds until a message is there that goes out with its sender's others; 0 where there is none."""
    alone_s = np.where(shares > 0, shares * one.alone_s, 0.0)
    together_s = (shares.sum(axis=2) * one.out_s)[:, :, None]
    return np.where(shares > 0, np.maximum(alone_s, together_s), 0.0)


def _in_step(one: Members, load: Traffic, all_of_them: bool) -> Floats:
    """(n,) of members who wait for one another; all_of_them: for everyone's messages, not only the first that come."""
    through_s = one.ready_s[None, :]
    for number, (shares, chained) in enumerate(load.phases):
        taking_s = _taking_s(one, shares)
        if number == 0 and not chained:
            through_s = through_s + _delay_s(one, shares, through_s, taking_s)
        if chained:  # next to nothing gets past who is not ready
            more = chained - shares.max()  # beside the latency that is in taking_s
            hops_s = more * np.where(shares > 0, one.latency_s, 0.0).max()
            through_s = through_s.max(axis=1, keepdims=True) + hops_s + np.zeros_like(one.ready_s)
        ends_s = [through_s + taking_s.max(axis=2), through_s + _handling_s(one, shares)]
        if all_of_them:
            arrives_s = np.where(shares > 0, through_s[:, :, None] + taking_s, 0.0)
            ends_s += [arrives_s.max(axis=1), _backlog_s(one, shares, through_s)]
        through_s = functools.reduce(np.maximum, ends_s)
    return np.full(one.ready_s.size, (through_s + one.after_s).max(axis=1).mean())


def _delay_s(one: Members, shares: Floats, ready_s: Floats, taking_s: Floats) -> Floats:
    """(steps, n) what a computation takes longer because others' messages come meanwhile."""
    before_s = np.broadcast_to(ready_s[:, None, :] - ready_s[:, :, None], taking_s.shape)
    part = np.divide(before_s, taking_s, out=np.zeros_like(taking_s), where=taking_s > 0).clip(0.0, 1.0)
    delay_s: Floats = (shares * part * one.receive_s).sum(axis=1) * one.computes
    return delay_s


def _handling_s(one: Members, shares: Floats) -> Floats:
    """(steps, n) processor time of all that a member sends and receives."""
    handled: Floats = (shares * one.send_s).sum(axis=2) + (shares * one.receive_s).sum(axis=1)
    return handled


def _backlog_s(one: Members, shares: Floats, begun_s: Floats) -> Floats:
    """(steps, n) when a link inwards that never rests has carried all; as lockstep has it for a server's."""
    from_then_on = (begun_s[:, None, :] >= begun_s[:, :, None]).astype(float)
    carried_s = np.matmul(from_then_on, shares) * one.in_s
    backlog_s: Floats = np.where(carried_s > 0, begun_s[:, :, None] + carried_s, 0.0).max(axis=1)
    return backlog_s


def _handled_s(one: Members, load: Traffic) -> Floats:
    """(n,) processor time of a step's messages on average."""
    ways = [phase.shares for phase in load.phases]
    if load.answers:
        ways += [shares.transpose(0, 2, 1) for shares in ways]
    handled: Floats = sum((_handling_s(one, shares).mean(axis=0) for shares in ways), np.zeros_like(one.ready_s))
    return handled


def _fits(one: Members, shares: Floats) -> Floats:
    """(n, n) how many messages a link takes while its sender computes a gradient; infinite where there are none."""
    in_s = np.where(shares > 0, (shares.sum(axis=1) * one.in_s)[:, None, :], 0.0)
    taking_s = np.maximum(_taking_s(one, shares), in_s).mean(axis=0)
    fits: Floats = np.divide(one.gradient_s[:, None], taking_s, out=np.full_like(taking_s, np.inf), where=taking_s > 0)
    return fits


def _at_one_pace(one: Members, load: Traffic, handled_s: Floats) -> Floats:
    """(n,) of members who compute while they send, each as if all others made as many steps."""
    shares = load.phases[0].shares
    links_s = np.maximum(_taking_s(one, shares).max(axis=2), shares.sum(axis=1) * one.in_s).mean(axis=0)
    pace_s: Floats = np.maximum(one.ready_s + one.after_s + one.computes * handled_s, links_s)
    return pace_s


def _at_once(one: Members, whole: Traffic, fits: Floats) -> tuple[Floats, Floats, Traffic]:
    """(n,) each: seconds of a step of members who do not wait, and compute while they send; those at full load.

    Who is fast sends several times in a slow one's step: what comes to each in a second is everybody's messages at
    everybody's own pace, and holds its computation up. Where more would come than a link carries or a processor takes
    in, senders are held back by it. fits: (n, n) messages that a link takes during an undisturbed gradient; one that
    transfers hold up leaves room for more, by the factor ``stretch``. Returned last: the load, cut to what fits.
    """
    undisturbed_s = one.ready_s + one.service_s
    received_s = one.receive_s * one.computes
    cycle_s, stretch = undisturbed_s, np.ones_like(undisturbed_s)
    for _ in range(SETTLED):
        load = whole.scaled(np.minimum(1.0, fits * stretch[:, None]))
        shares = load.phases[0].shares.mean(axis=0)
        outward_s = _taking_s(one, load.phases[0].shares).max(axis=2).mean(axis=0)
        own_s = undisturbed_s + (shares * one.send_s).sum(axis=1) * one.computes
        per_s = shares / cycle_s[:, None]
        held_up = (per_s * received_s).sum(axis=0)
        taken = held_up + (per_s * one.add_s).sum(axis=0)
        busy_s = own_s / (1 - np.minimum(taken, MOST_TAKEN))
        stretch = own_s / undisturbed_s / (1 - np.minimum(held_up, MOST_TAKEN))
        fullest = np.maximum((per_s * one.in_s).sum(axis=0), taken / MOST_TAKEN)
        held_s = cycle_s * np.where(shares > 0, fullest, 0.0).max(axis=1)
        cycle_s = functools.reduce(np.maximum, (busy_s, outward_s, held_s))
    return cycle_s, busy_s, load


def _asking(one: Members, asks: Floats) -> Floats:
    """(n,) of pairs: who asks waits for the answer, who is asked goes on meanwhile, at the expense of its processor.

    asks: (n, n) how often one asks another in a step. At the other's link each meets others as often as they use it.
    """
    own_s, both_ways_s = one.ready_s + one.after_s, one.alone_s + one.alone_s.T + one.after_s
    cycle_s = own_s
    for _ in range(SETTLED):
        used = asks * one.in_s / cycle_s[:, None]
        met_s = (used.sum(axis=0) - used) * (one.in_s + one.out_s)
        cycle_s = own_s + (asks * (both_ways_s + met_s)).sum(axis=1)
    handled_s = np.where(one.computes, one.receive_s + one.send_s.T, 0.0) + one.after_s
    taken = (asks / cycle_s[:, None] * handled_s).sum(axis=0)
    return np.where(asks.sum(axis=1) > 0, cycle_s, cycle_s / (1 - np.minimum(taken, MOST_TAKEN)))


def _turn_s(costs: Costs, candidates: Candidates, members: Bools) -> Floats:
    """(C, N) what the word to the conductor and back takes; that of the farthest where all wait for one another."""
    both_ways_s = np.where(members, (costs.pairs.latency_s + costs.pairs.latency_s.T)[candidates.hosts], 0.0)
    if not np.isfinite(costs.strategy.sync.staleness):
        return both_ways_s
    farthest: Floats = both_ways_s.max(axis=1, keepdims=True)
    return farthest
