"""The step cycle T_i^C of Eq. 2 is the time of a step of each worker in each candidate cluster.

Gu et al. tune the factors alpha and beta of Eq. 2 and 3 by hand. Here the cycle follows from the
queueing model, and ``without_network`` gives the value that the paper's form divides by.
"""

import math
from typing import NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.predict import async_server, decentralized, local_rounds, sync_server, torch_engine
from planner.predict.batch_size import gradients_s as of_run
from planner.predict.clusters import Candidates
from planner.predict.costs import Costs
from planner.predict.local_rounds import Rounds

#: What a cycle's time goes to; the largest share is the cluster's bottleneck.
COMPUTE, SLOW_LINK, SERVER_LINK, SERVER_CPU = range(4)
BOTTLENECKS = ("compute", "slow link", "server link", "server CPU")
#: The part of ``compute`` that a gradient waits for its batch to be read.
DATA = "data"


class Cycles(NamedTuple):
    """Steady state of C candidates of N devices.

    cycle_s: (C, N), T_i^C, infinite where a device is no member.
    busy: (C, N), share of the time that a device works at full load.
    shares: (C, 4), of the workers' time by BOTTLENECKS, summing to 1.
    network_bytes: (C, N), of one step of a device.
    """

    cycle_s: Floats
    busy: Floats
    shares: Floats
    network_bytes: Floats


def solve(costs: Costs, candidates: Candidates) -> Cycles:
    """Cycles of all candidates. A device alone updates by itself and uses no network."""
    if costs.strategy.local:
        return _of_rounds(costs, candidates)
    if costs.strategy.batching == "fixed" and costs.shares is None:
        return _solve(costs, candidates)
    return _solve_apart(costs, candidates, gradients_s(costs, candidates))


def _solve_apart(costs: Costs, candidates: Candidates, gradient_s: Floats) -> Cycles:
    """Cycles where gradients, (C, N) seconds, take longer in some candidates than in others."""
    gradient_s = np.where(candidates.members(len(costs.names)), gradient_s, costs.devices.gradient_s)
    keys = np.column_stack([candidates.masks, gradient_s])
    order = np.lexsort(keys.T)
    rows = np.split(order, np.flatnonzero(np.diff(keys[order], axis=0).any(axis=1)) + 1)
    parts = [_solve(costs.with_gradients(gradient_s[at[0]]), candidates.at(at)) for at in rows]
    order = np.argsort(np.concatenate(rows))
    return Cycles(*(np.concatenate(each)[order] for each in zip(*parts, strict=True)))


def rounds(costs: Costs, candidates: Candidates) -> Rounds:
    """The rounds of a strategy that has them. A device alone makes none."""
    members, local = candidates.members(len(costs.names)), costs.strategy.local
    exchange_s = np.zeros(candidates.hosts.size)
    if local.seconds is None and local.every is None:
        exchange_s = _exchange_s(costs, candidates, members)
    alone = members.sum(axis=1) == 1
    exchange_s = np.where(alone, 0.0, exchange_s)  # its own end of a loopback need not be measured
    found = local_rounds.of_candidates(local, local_step_s(costs, candidates), exchange_s, members)
    return found._replace(steps=np.where(alone[:, None], 1.0, found.steps))


def images_factor(costs: Costs, candidates: Candidates) -> Floats:
    """(C,) images that rounds of local steps take over those of one device alone; else 1."""
    if costs.rounds_efficiency is None:
        return np.ones(candidates.hosts.size)
    return costs.rounds_efficiency.images_factor(rounds(costs, candidates).steps, candidates.members(len(costs.names)))


def settled(costs: Costs, candidates: Candidates, index: int) -> Costs:
    """The costs of a strategy whose rounds are those that were chosen for one candidate."""
    if not costs.strategy.local:
        return costs
    found = rounds(costs, candidates.at(np.array([index]))).settled(costs.strategy.local, 0)
    return costs._replace(strategy=costs.strategy.with_part("local", found.as_text()))


def local_step_s(costs: Costs, candidates: Candidates) -> Floats:
    """(C, N) seconds of a step that a member makes by itself; an update for no member."""
    return gradients_s(costs, candidates) + costs.devices.update_s


def _exchange_s(costs: Costs, candidates: Candidates, members: Bools) -> Floats:
    """(C,) seconds of the slowest member's exchange, without contention where nobody waits."""
    if costs.strategy.through_server and costs.strategy.sync.staleness:
        there_and_back_s = (costs.pairs.up_s + costs.pairs.down_s).T[candidates.hosts]
        return np.asarray(np.where(members, there_and_back_s, 0.0).max(axis=1))
    exchange = _solve(costs.with_gradients(np.full(len(costs.names), 1e-9)), candidates)
    return np.asarray(np.where(members, exchange.cycle_s, 0.0).max(axis=1))


def _of_rounds(costs: Costs, candidates: Candidates) -> Cycles:
    """Cycles of one step each, of rounds that are solved as steps with long gradients.

    Peers also send their state to all others in each round.
    """
    members = candidates.members(len(costs.names))
    steps, step_s = rounds(costs, candidates).steps, local_step_s(costs, candidates)
    found = _solve_apart(_varying_less(costs, members, steps), candidates, steps * step_s)
    others = 0.0 if costs.strategy.through_server else np.maximum(0, members.sum(axis=1) - 1)[:, None]
    sent_bytes = found.network_bytes + np.where(members, others * costs.state_bytes, 0.0)
    alone = (members.sum(axis=1) == 1)[:, None]
    cycle_s = np.where(alone & members, step_s, found.cycle_s / steps)
    return found._replace(cycle_s=cycle_s, network_bytes=sent_bytes / steps)


def _varying_less(costs: Costs, members: Bools, steps: Floats) -> Costs:
    """A sum of h times varies less than each of them: by the square root of their number."""
    together = members & (members.sum(axis=1) > 1)[:, None]
    usual = steps.sum(axis=0, where=together) / np.maximum(1, together.sum(axis=0))
    roots = np.sqrt(np.maximum(1.0, usual))
    varied = tuple(1 + (each - 1) / root for each, root in zip(costs.devices.variation, roots, strict=True))
    return costs._replace(devices=costs.devices._replace(variation=varied))


def gradients_s(costs: Costs, candidates: Candidates) -> Floats:
    """(C, N) seconds of the gradients of the batches that members have; 0 for no member."""
    masks, where = np.unique(candidates.masks, return_inverse=True)
    members = Candidates(masks, masks).members(len(costs.names))
    if costs.shares is not None:
        found = costs.shares.gradients(costs.shares.batches(members))
    elif costs.strategy.batching == "fixed":
        found = np.broadcast_to(costs.devices.gradient_s, members.shape)
    else:
        found = np.stack([_of_changing_batches(costs, row) for row in members])
    return np.asarray(np.where(members, found, 0.0)[where])


def _of_changing_batches(costs: Costs, members: Bools) -> Floats:
    """(N,) seconds of the gradients that ``members``, (N,), compute in a run of theirs."""
    devices, found = costs.devices, np.zeros(len(members))
    ranked = sorted(np.flatnonzero(members), key=lambda i: costs.names[i])
    found[ranked] = of_run(
        costs.strategy, costs.batch, costs.batches, devices.gradient_s[ranked], devices.image_s[ranked]
    )
    return found


def _solve(costs: Costs, candidates: Candidates) -> Cycles:
    members = candidates.members(len(costs.names))
    alone = members.sum(axis=1) == 1
    with_server = costs.strategy.through_server
    cycle_s, busy, shares, sent_bytes = (_served if with_server else _among_peers)(costs, candidates)
    cycle_s[alone] = np.where(members[alone], costs.devices.gradient_s + costs.devices.update_s, np.inf)
    shares[alone] = np.eye(4)[COMPUTE]
    busy[alone] = members[alone]
    sent_bytes[alone] = 0.0
    return Cycles(cycle_s, busy, shares, sent_bytes)


def _among_peers(costs: Costs, candidates: Candidates) -> Cycles:
    """Cycles of clusters without a server; a link that peers share counts as slow."""
    torch = costs.torch
    steps = decentralized.solve(costs, candidates) if torch is None else torch_engine.solve(costs, torch, candidates)
    rate = 1 / steps.cycle_s
    busy = np.minimum(1.0, rate * steps.busy_s)
    shares = np.zeros((rate.shape[0], len(BOTTLENECKS)))
    shares[:, COMPUTE] = busy.sum(axis=1) / (rate > 0).sum(axis=1)
    shares[:, SLOW_LINK] = 1 - shares[:, COMPUTE]
    return Cycles(steps.cycle_s, busy, shares, steps.sent_bytes)


def _served(costs: Costs, candidates: Candidates) -> Cycles:
    members = candidates.members(len(costs.names))
    uncontended_s, demand_s, unqueued_s = _stations(costs)
    demand_s, delay_s = async_server.split_cycle(uncontended_s, demand_s)
    cycle_s, queue = _steady(demand_s, delay_s, unqueued_s, members, candidates.hosts)
    shares = _shares(costs, candidates.hosts, 1 / cycle_s, demand_s, queue)
    cycle_s, shares = _synchronised(costs, candidates, cycle_s, shares)
    busy = _busy(costs, candidates.hosts, 1 / cycle_s)
    sent_bytes = np.where(members, float(costs.up_bytes + costs.down_bytes), 0.0)
    sent_bytes[np.arange(members.shape[0]), candidates.hosts] = 0.0
    return Cycles(cycle_s, busy, shares, sent_bytes)


def _synchronised(costs: Costs, candidates: Candidates, cycle_s: Floats, shares: Floats) -> tuple[Floats, Floats]:
    sync = costs.strategy.sync
    members = candidates.members(len(costs.names))
    if not math.isfinite(sync.staleness):
        return cycle_s, shares
    if sync.staleness or sync.backups:
        return sync_server.at_slowest_rate(cycle_s), shares
    round_s, computed_s = sync_server.round_s(costs, candidates)
    computing = (computed_s / round_s)[:, None]
    others = shares.copy()
    others[:, COMPUTE] = 0.0
    total = others.sum(axis=1, keepdims=True)
    others = np.divide(others * (1 - computing), total, out=np.zeros_like(others), where=total > 0)
    others[:, COMPUTE] = 1 - others.sum(axis=1)
    return np.where(members, round_s[:, None], np.inf), others


def without_network(costs: Costs) -> Costs:
    """The costs with infinitely fast links: an exchange is the busier end's processor time."""
    pairs, unlimited = costs.pairs, np.full(len(costs.names), np.inf)
    exchange_s = np.minimum(pairs.up_s + pairs.down_s, np.maximum(pairs.worker_cpu_s, pairs.host_cpu_s))
    np.fill_diagonal(exchange_s, np.diagonal(pairs.up_s + pairs.down_s))
    return costs._replace(
        devices=costs.devices._replace(in_bytes_per_s=unlimited, out_bytes_per_s=unlimited),
        pairs=pairs._replace(
            up_s=exchange_s,
            down_s=np.zeros_like(exchange_s),
            host_stolen_cpu_s=pairs.host_cpu_s,
            weights_s=np.zeros_like(exchange_s),
            latency_s=np.zeros_like(exchange_s),
        ),
        torch=costs.torch and costs.torch._replace(bytes_per_s=np.full_like(exchange_s, np.inf)),
    )


def loads(costs: Costs) -> tuple[Floats, Floats]:
    """Seconds at full load that one cycle of a worker brings, (N, N) [host, worker] each.

    The worker computes and has its part of the exchange; the host has the other, and the update.
    """
    exchange_s = (costs.pairs.worker_cpu_s / costs.devices.cores[:, None]).T
    served_s = (costs.pairs.host_stolen_cpu_s / costs.devices.cores).T + update_cpu_s(costs)[:, None]
    return costs.devices.ready_s + exchange_s, served_s


def loads_of_step(costs: Costs, candidates: Candidates) -> tuple[Floats, Floats]:
    """``loads`` of each worker's step at the host of its candidate, (C, N) each.

    Of a round, each step has its part.
    """
    own_s, served_s = (each[candidates.hosts] for each in loads(costs))
    if not costs.strategy.local:
        return own_s, served_s
    steps = rounds(costs, candidates).steps
    return local_step_s(costs, candidates) + (own_s - costs.devices.gradient_s) / steps, served_s / steps


def update_cpu_s(costs: Costs) -> Floats:
    """(N,) part of an update that loads all of the host's cores: it has one thread."""
    return costs.devices.service_s / np.maximum(1.0, costs.devices.cores)


def _stations(costs: Costs) -> tuple[Floats, Floats, Floats]:
    """Uncontended cycles, demands and unqueued seconds, [host, worker], demands by station."""
    remote = ~np.eye(len(costs.names), dtype=bool)
    held_s = update_cpu_s(costs)
    handled_s = costs.pairs.host_stolen_cpu_s / costs.devices.cores
    exchange_s = costs.pairs.up_s.T + costs.pairs.down_s.T
    # On one core or less a few messages can be over before a quota takes effect.
    local_s = np.where(costs.devices.cores > 1, np.diagonal(exchange_s), 0.0)
    np.fill_diagonal(exchange_s, np.maximum(local_s, np.diagonal(handled_s)))
    uncontended_s = costs.devices.ready_s + exchange_s + costs.devices.service_s[:, None]
    demand_s = np.zeros((*uncontended_s.shape, len(async_server.STATIONS)))
    sent_s, received_s = costs.up_bytes / costs.devices.in_bytes_per_s, costs.down_bytes / costs.devices.out_bytes_per_s
    demand_s[..., async_server.LINK_IN] = np.minimum(sent_s[:, None], costs.pairs.up_s.T) * remote
    demand_s[..., async_server.LINK_OUT] = np.minimum(received_s[:, None], costs.pairs.down_s.T) * remote
    waiting = _waiting(costs)
    demand_s[..., async_server.PROCESSOR] = (handled_s * waiting).T + held_s[:, None]
    demand_s[..., async_server.PROCESSOR] += np.diag(_local_compute_s(costs))
    demand_s[..., async_server.LOCK] = (costs.devices.service_s - held_s)[:, None]
    demand_s[~np.isfinite(uncontended_s)] = 0.0
    return uncontended_s, demand_s, (handled_s * (1 - waiting)).T


def _waiting(costs: Costs) -> Floats:
    """(N, N) [worker, host]: share of an exchange's processor time that waits for a computation.

    A fair scheduler runs a thread that sleeps more than its share whenever it wakes: a transfer
    over a slow link does not wait, it only slows the computation. One that keeps a core busy beside
    a computation on c cores is due c / (c + 1) of it. Between the two the excess waits. A
    co-located worker does not compute during its exchange.
    """
    due = np.maximum(1.0, costs.devices.cores) / (np.maximum(1.0, costs.devices.cores) + 1)
    one_core_s = costs.pairs.host_stolen_cpu_s / np.minimum(1.0, costs.devices.cores)
    excess = np.divide(
        costs.pairs.up_s + costs.pairs.down_s, one_core_s, out=np.full_like(one_core_s, np.inf), where=one_core_s > 0
    )
    waiting = np.clip((1 / due - excess) / (1 / due - 1), 0.0, 1.0)
    np.fill_diagonal(waiting, 1.0)
    return waiting


def _local_compute_s(costs: Costs) -> Floats:
    """(N,) part of a gradient that loads the processors of a host it shares with the server."""
    return np.minimum(costs.devices.gradient_s, costs.devices.step_cpu_s / costs.devices.cores)


def _steady(
    demand_s: Floats, delay_s: Floats, unqueued_s: Floats, members: Bools, hosts: Ints
) -> tuple[Floats, Floats]:
    """(C, N) cycles and (C, stations) queues, solved for the devices that are candidates."""
    used = np.flatnonzero(members.any(axis=0))
    served, host = np.unique(hosts, return_inverse=True)
    around = np.ix_(served, used)
    states = async_server.solve(demand_s[around], delay_s[around], unqueued_s[around])
    at = host, members[:, used] @ (1 << np.arange(used.size))
    cycle_s = np.full(members.shape, np.inf)
    cycle_s[:, used] = states.cycle_s[at]
    return cycle_s, states.queue[at]


def _shares(costs: Costs, hosts: Ints, rate: Floats, demand_s: Floats, queue: Floats) -> Floats:
    """(C, 4) mean shares of the workers' cycles; a queue is its time times the rate (Little)."""
    at_host = np.arange(hosts.size), hosts
    shares = np.empty((hosts.size, len(BOTTLENECKS)))
    links_s = demand_s[..., async_server.LINK_IN] + demand_s[..., async_server.LINK_OUT]
    one_core_s = (costs.pairs.host_cpu_s * np.maximum(0.0, 1 - 1 / costs.devices.cores)).T
    local_s = _local_compute_s(costs)[hosts] * rate[at_host]
    in_links = queue[:, async_server.LINK_IN] + queue[:, async_server.LINK_OUT]
    on_server = queue[:, async_server.PROCESSOR] + queue[:, async_server.LOCK]
    shares[:, COMPUTE] = rate @ costs.devices.ready_s
    shares[:, SERVER_LINK] = in_links - (rate * links_s[hosts]).sum(axis=1)
    shares[:, SERVER_CPU] = on_server - local_s + (rate * one_core_s[hosts]).sum(axis=1)
    workers = (rate > 0).sum(axis=1)
    shares[:, SLOW_LINK] = workers - shares[:, [COMPUTE, SERVER_LINK, SERVER_CPU]].sum(axis=1)
    np.maximum(shares, 0.0, out=shares)
    shares /= shares.sum(axis=1, keepdims=True)
    return shares


def _busy(costs: Costs, hosts: Ints, rate: Floats) -> Floats:
    own_s, served_s = loads(costs)
    busy = rate * own_s[hosts]
    busy[np.arange(hosts.size), hosts] += (rate * served_s[hosts]).sum(axis=1)
    return np.minimum(busy, 1.0)
