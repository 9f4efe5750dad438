"""The cycle of a cluster is what a gradient, its exchange and its update take each of its workers.

It follows from the model of the kind of cluster: around a server that waits for nobody or for all,
or among peers.
"""

import math
from typing import NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.predict import async_server, decentralized, sync_server, torch_engine
from planner.predict.clusters import Candidates
from planner.predict.costs import Costs

#: What a cycle's time goes to; the largest share is the cluster's bottleneck.
COMPUTE, SLOW_LINK, SERVER_LINK, SERVER_CPU = range(4)
BOTTLENECKS = ("compute", "slow link", "server link", "server CPU")
#: The part of ``compute`` that a gradient waits for its batch to be read.
DATA = "data"
#: What waits for samples that arrive in streams add to it.
STREAM = "stream"


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
    """Cycles whose gradients take as long in all candidates. A device alone uses no network."""
    members = candidates.members(len(costs.names))
    alone = members.sum(axis=1) == 1
    with_server = costs.strategy.through_server
    cycle_s, busy, shares, sent_bytes = (_served if with_server else _among_peers)(costs, candidates)
    cycle_s[alone] = np.where(members[alone], costs.devices.alone_s, np.inf)
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


def loads(costs: Costs) -> tuple[Floats, Floats]:
    """Seconds at full load that one cycle of a worker brings, (N, N) [host, worker] each.

    The worker computes and has its part of the exchange; the host has the other, and the update.
    """
    exchange_s = (costs.pairs.worker_cpu_s / costs.devices.cores[:, None]).T
    served_s = (costs.pairs.host_stolen_cpu_s / costs.devices.cores).T + update_cpu_s(costs)[:, None]
    return costs.devices.ready_s + exchange_s, served_s


def update_cpu_s(costs: Costs) -> Floats:
    """(N,) part of an update that loads all of the host's cores: it has one thread."""
    return costs.devices.service_s / np.maximum(1.0, costs.devices.cores)


def _stations(costs: Costs) -> tuple[Floats, Floats, Floats]:
    """Uncontended cycles, demands and unqueued seconds, [host, worker], demands by station."""
    remote = ~np.eye(len(costs.names), dtype=bool)
    held_s = update_cpu_s(costs)
    handled_s = costs.pairs.host_stolen_cpu_s / costs.devices.cores
    exchange_s = costs.pairs.up_s.T + costs.pairs.down_s.T
    np.fill_diagonal(exchange_s, costs.local_exchange_s(np.diagonal(exchange_s)))
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
    devices = costs.devices
    return np.minimum(devices.gradient_s, devices.step_cpu_s / devices.cores)


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
