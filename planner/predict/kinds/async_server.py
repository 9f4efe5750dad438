"""Workers of an asynchronous server compute, exchange with it and begin again, without waiting.

The problem: find the cycle T_i of each worker of every cluster, with T_i = Z_i + sum_s R_is over
the stations s of the server's host, where worker i has the demand D_is seconds a cycle:

    link in     bytes sent / what the host's link takes in       processor sharing
    link out    bytes received / what it gives out               processor sharing
    processor   updates, and the whole gradient of a co-located  processor sharing
                worker that computes there
    lock        the serial update                                first come first served

Z_i is the rest of the uncontended cycle, so that a remote worker alone is predicted as measured.
This is a closed queueing network (Baskett, Chandy, Muntz and Palacios, 1975) whose customers, the
workers, are each a class of its own. Approximate mean value analysis (Schweitzer, 1979) says what
an arriving worker finds: the mean numbers Q_js = R_js / T_j of the others,

    R_is = D_is (1 + sum_{j != i} Q_js),

and T, R, Q are iterated to their fixed point for all clusters at once. On c cores a demand of D
core-seconds queues for D/c (Seidmann, Schweitzer and Shalev-Oren, 1987).
Exchanges take processor seconds, too. Pieces that ask for less than their fair share of the cores
wait for nobody: these, H_j a cycle, slow what queues for the processor, whose R_is is divided by
1 - sum_{j != i} H_j / T_j (the shadow processor of Sevcik, 1977). What asks for more queues itself.

With bounded staleness all workers end up as slow as the slowest: T is the largest of the right
sides, and the others find queues at that rate.
"""

import math
from typing import NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.predict.clusters import Candidates
from planner.predict.inputs import Inputs
from planner.predict.kinds.cycles import (
    BOTTLENECKS,
    COMPUTE,
    SERVER_CPU,
    SERVER_LINK,
    SLOW_LINK,
    Cycles,
    Served,
    served,
)

LINK_IN, LINK_OUT, PROCESSOR, LOCK = range(4)
#: Messages never take a larger share of a processor from what queues for it.
MOST_STOLEN = 0.9
#: The fixed point is found when no cycle changes by more than this share.
PRECISION = 1e-7
MOST_ITERATIONS = 500
#: Part of each correction that is made: whole ones could swing.
STEP = 0.8
#: Clusters that are solved at once, so that their arrays fit into a processor's cache.
AT_ONCE = 512


class Stations(NamedTuple):
    """Demands (C, N, 4), the rest of the cycle and processor seconds that do not queue, (C, N)."""

    demand_s: Floats
    delay_s: Floats
    stolen_s: Floats


def cycles(inputs: Inputs, candidates: Candidates, gradient_s: Floats) -> Cycles:
    """Cycles of all clusters. gradient_s: (C, N)."""
    members, hosts = candidates.members(len(inputs.names)), candidates.hosts
    devices, exchange = inputs.devices, served(inputs, members, hosts)
    stations = _stations(inputs, candidates, gradient_s, exchange)
    together = math.isfinite(inputs.strategy.sync.staleness)
    cycle_s, queue = steady_state(stations, members, together)
    shares = _shares(inputs, stations, cycle_s, queue, candidates, gradient_s)
    if together:
        cycle_s = _slowest(cycle_s)
    own_s = gradient_s + devices.copy_s + devices.encode_s + exchange.worker_cpu_s
    busy = own_s / cycle_s
    busy[np.arange(hosts.size), hosts] += (serving_s(inputs, exchange, hosts) / cycle_s).sum(axis=1)
    remote = members & (np.arange(len(inputs.names)) != hosts[:, None])
    return Cycles(
        cycle_s, np.minimum(busy, 1.0), shares, np.where(remote, float(inputs.message.up + inputs.message.down), 0.0)
    )


def serving_s(inputs: Inputs, exchange: Served, hosts: Ints) -> Floats:
    """(C, N) seconds at full load that hosts of servers, (C,), have with a cycle of each member."""
    update_s = inputs.devices.service_s / np.maximum(1.0, inputs.devices.cores)
    return exchange.host_up_s + exchange.host_down_s + update_s[hosts, None]


def _stations(inputs: Inputs, candidates: Candidates, gradient_s: Floats, exchange: Served) -> Stations:
    devices, hosts = inputs.devices, candidates.hosts
    members = candidates.members(len(inputs.names))
    service_s = devices.service_s[hosts, None]
    loading_s = service_s / np.maximum(1.0, devices.cores)[hosts, None]  # an update has one thread
    uncontended_s = gradient_s + devices.copy_s + devices.encode_s + exchange.up_s + exchange.down_s + service_s
    demand_s = np.zeros((*uncontended_s.shape, 4))
    demand_s[..., LINK_IN], demand_s[..., LINK_OUT] = exchange.carried_in_s, exchange.carried_out_s
    demand_s[..., PROCESSOR] = loading_s + _local_compute_s(inputs, candidates, gradient_s)
    demand_s[..., LOCK] = service_s - loading_s
    stolen_s = exchange.host_up_s + exchange.host_down_s
    queueing_s = _queueing(inputs, candidates, exchange) * stolen_s
    demand_s[..., PROCESSOR] += queueing_s
    demand_s *= members[..., None]
    total_s = demand_s.sum(axis=-1)
    # Demands that overlap in time can exceed the cycle together, and are scaled to fit it.
    fits = np.divide(uncontended_s, total_s, out=np.ones_like(total_s), where=total_s > uncontended_s)
    return Stations(demand_s * fits[..., None], uncontended_s - total_s * fits, stolen_s - queueing_s)


def _queueing(inputs: Inputs, candidates: Candidates, exchange: Served) -> Floats:
    """(C, N) part of the processor's work with an exchange that queues for it.

    Beside a computation on all c cores, a thread is due c / (c + 1) of one. What asks for less of
    it waits for nobody; what keeps it busy from end to end queues whole.
    """
    cores = np.maximum(1.0, inputs.devices.cores)[candidates.hosts, None]
    worked_s, lasts_s = (exchange.host_up_s + exchange.host_down_s) * cores, exchange.up_s + exchange.down_s
    stretch = np.divide(lasts_s, worked_s, out=np.full_like(lasts_s, np.inf), where=worked_s > 0)
    local = np.arange(len(inputs.names)) == candidates.hosts[:, None]
    return np.where(local, 1.0, (1 + cores * (1 - stretch)).clip(0.0, 1.0))


def _local_compute_s(inputs: Inputs, candidates: Candidates, gradient_s: Floats) -> Floats:
    """(C, N) part of a gradient that loads the processors of a host it shares with the server."""
    devices = inputs.devices
    loading = np.minimum(1.0, devices.cpu_s / devices.cores / devices.gradient_s)
    local = np.arange(len(inputs.names)) == candidates.hosts[:, None]
    return np.where(local, gradient_s * loading, 0.0)


def steady_state(stations: Stations, members: Bools, together: bool = False) -> tuple[Floats, Floats]:
    """(C, N) cycles, infinite for no member, and (C, 4) mean numbers of workers at each station.

    together: whether all members begin as seldom as the slowest; cycles are without that wait.
    """
    parts = [slice(at, at + AT_ONCE) for at in range(0, max(1, len(members)), AT_ONCE)]
    found = [_fixed_point(Stations(*(each[rows] for each in stations)), members[rows], together) for rows in parts]
    cycle_s, number = (np.concatenate(each) for each in zip(*found, strict=True))
    return cycle_s, number


def _fixed_point(stations: Stations, members: Bools, together: bool) -> tuple[Floats, Floats]:
    """``steady_state`` of some clusters. Each stops by itself, whatever others there are."""
    demand_s, stolen_s = stations.demand_s, stations.stolen_s
    response_s, moving = demand_s, np.ones(len(members), np.bool_)
    cycle_s = np.where(members, stations.delay_s + response_s.sum(axis=-1), np.inf)
    for _ in range(MOST_ITERATIONS):
        pace_s = _slowest(cycle_s) if together else cycle_s
        number = response_s / pace_s[..., None]
        ahead = number.sum(axis=1, keepdims=True) - number
        stealing = stolen_s / pace_s
        stolen = np.minimum(stealing.sum(axis=1, keepdims=True) - stealing, MOST_STOLEN)
        found_s = demand_s * (1 + ahead)
        found_s[..., PROCESSOR] /= 1 - stolen
        response_s = np.where(moving[:, None, None], STEP * found_s + (1 - STEP) * response_s, response_s)
        before_s, cycle_s = cycle_s, np.where(members, stations.delay_s + response_s.sum(axis=-1), np.inf)
        changed = np.divide(cycle_s, before_s, out=np.ones_like(cycle_s), where=members)
        moving = moving & (np.abs(changed - 1).max(axis=1) > PRECISION)
        if not moving.any():
            break
    return cycle_s, (response_s / cycle_s[..., None]).sum(axis=1)


def _slowest(cycle_s: Floats) -> Floats:
    """(C, N) the longest cycle of a member; infinite for no member."""
    members = np.isfinite(cycle_s)
    return np.where(members, np.where(members, cycle_s, 0.0).max(axis=1, keepdims=True), np.inf)


def _shares(
    inputs: Inputs, stations: Stations, cycle_s: Floats, queue: Floats, candidates: Candidates, gradient_s: Floats
) -> Floats:
    """(C, 4) mean shares of the workers' cycles; a queue is its time times the rate (Little)."""
    members, rate = np.isfinite(cycle_s), 1 / cycle_s
    devices, demand_s = inputs.devices, stations.demand_s
    ready_s = gradient_s + devices.copy_s + devices.encode_s
    links_s = demand_s[..., LINK_IN] + demand_s[..., LINK_OUT]
    local_s = _local_compute_s(inputs, candidates, gradient_s)
    shares = np.empty((len(rate), len(BOTTLENECKS)))
    shares[:, COMPUTE] = (rate * ready_s).sum(axis=1)
    shares[:, SERVER_LINK] = queue[:, LINK_IN] + queue[:, LINK_OUT] - (rate * links_s).sum(axis=1)
    shares[:, SERVER_CPU] = queue[:, PROCESSOR] + queue[:, LOCK] - (rate * local_s).sum(axis=1)
    shares[:, SLOW_LINK] = members.sum(axis=1) - shares[:, [COMPUTE, SERVER_LINK, SERVER_CPU]].sum(axis=1)
    shares = np.maximum(shares, 0.0)
    return shares / shares.sum(axis=1, keepdims=True)
