"""The synchronous model predicts rounds of workers that wait for one another at a server."""

import numpy as np

from planner.arrays import Bools, Floats
from planner.predict.clusters import Candidates
from planner.predict.costs import Costs
from planner.predict.straggler import paces_of


def round_s(costs: Costs, candidates: Candidates) -> tuple[Floats, Floats]:
    """(C,) seconds of a synchronous round, and (C,) of them those of the slowest gradient.

    All workers begin at once and send when they are ready, at the pace of the
    slowest gradient of each round (``straggler``), through a link and to a processor that never
    rest while something waits. The last gradient has arrived when the slowest exchange is over, or
    when all that became ready from some moment on has been carried. Then all are applied, and the
    weights go to all workers at once.
    """
    members, hosts = candidates.members(len(costs.names)), candidates.hosts
    remote = members.copy()
    remote[np.arange(hosts.size), hosts] = False
    masks, where = np.unique(candidates.masks, return_inverse=True)
    waiting = paces_of(costs.devices, masks)[where] - 1
    ready_s = costs.devices.ready_s + waiting[:, None] * costs.devices.gradient_s
    carried_s = (costs.up_bytes / costs.devices.in_bytes_per_s)[hosts, None] * remote
    handled_s = (costs.pairs.host_stolen_cpu_s / costs.devices.cores).T[hosts] * members
    up_part = costs.up_bytes / (costs.up_bytes + costs.down_bytes)  # of the processor time, too
    up_s, down_s = costs.pairs.up_s.T.copy(), costs.pairs.down_s.T.copy()  # [host, worker]
    for whole_s, part in ((up_s, up_part), (down_s, 1 - up_part)):
        np.fill_diagonal(whole_s, costs.local_exchange_s(np.diagonal(whole_s), part))
    up_s, down_s = up_s[hosts], down_s[hosts]
    own_s = _most(ready_s + up_s, members)
    shared_s = np.maximum(_backlog(ready_s, carried_s, members), _backlog(ready_s, handled_s * up_part, members))
    applied_s = members.sum(axis=1) * costs.devices.service_s[hosts]
    sent_s = (costs.down_bytes / costs.devices.out_bytes_per_s)[hosts] * remote.sum(axis=1)
    returned_s = np.maximum(sent_s, (handled_s * (1 - up_part)).sum(axis=1))
    returned_s = np.maximum(returned_s, _most(down_s, members))
    return np.maximum(own_s, shared_s) + applied_s + returned_s, _most(ready_s, members)


def _backlog(ready_s: Floats, demand_s: Floats, members: Bools) -> Floats:
    """(C,) seconds until a server that never rests has done all: the latest of ready + to come.

    ready_s, demand_s: (C, N).
    """
    order = np.argsort(ready_s, axis=1)
    to_come_s = np.cumsum(np.take_along_axis(demand_s, order, axis=1)[:, ::-1], axis=1)[:, ::-1]
    done_s = np.take_along_axis(ready_s, order, axis=1) + to_come_s
    return _most(done_s, np.take_along_axis(members, order, axis=1))


def _most(values: Floats, members: Bools) -> Floats:
    return np.where(members, values, 0.0).max(axis=1)


def at_slowest_rate(cycle_s: Floats) -> Floats:
    """(C, N) cycles with bounded staleness: in the end all workers take as long as the slowest."""
    members = np.isfinite(cycle_s)
    return np.where(members, _most(cycle_s, members)[:, None], np.inf)
