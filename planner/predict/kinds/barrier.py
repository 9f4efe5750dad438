"""Members that wait for one another in every step, around a server or among peers.

The problem: find the seconds of a step that ends when the last message has arrived and been used,

    T = max_i end_i,    end_i >= ready_i + out_i, ready_i + handled_i, max_j (ready_j + m_ji),
                                 and the seconds until i's link has carried all messages for it,

with ready_i the gradient of member i, out_i the seconds in which its messages leave, handled_i
those of its processors and m_ji those of a message from j. Topologies with several phases repeat
this with ready_i = end_i. Around a ring nothing passes a member that is not ready, so that its hops
begin when the slowest is. Through a server, gradients arrive, all are applied, and the weights go
back to all at once.

Peers with bounded staleness send while they compute; all are as fast as the slowest in the end.
"""

import functools

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.predict import traffic
from planner.predict.clusters import Candidates
from planner.predict.inputs import Inputs
from planner.predict.kinds import peers as among
from planner.predict.kinds.cycles import COMPUTE, Cycles, served
from planner.predict.kinds.peers import Peers, Step
from planner.predict.traffic import Traffic


def cycles(inputs: Inputs, candidates: Candidates, gradient_s: Floats) -> Cycles:
    """Cycles of all clusters. gradient_s: (C, N)."""
    if inputs.strategy.through_server:
        return _through_server(inputs, candidates, gradient_s)
    return among.solve(inputs, candidates, gradient_s, _step)


def _through_server(inputs: Inputs, candidates: Candidates, gradient_s: Floats) -> Cycles:
    devices, hosts = inputs.devices, candidates.hosts
    members = candidates.members(len(inputs.names))
    exchange = served(inputs, members, hosts)
    ready_s = gradient_s + devices.copy_s + devices.encode_s
    arrived_s = np.maximum.reduce([
        _most(ready_s + exchange.up_s, members),
        _carried_s(ready_s, exchange.carried_in_s, members),
        _carried_s(ready_s, exchange.host_up_s, members),
    ])  # fmt: skip
    applied_s = members.sum(axis=1) * devices.service_s[hosts]
    returned_s = np.maximum.reduce([
        _most(exchange.down_s, members), exchange.carried_out_s.sum(axis=1), exchange.host_down_s.sum(axis=1),
    ])  # fmt: skip
    round_s = arrived_s + applied_s + returned_s
    busy_s = ready_s + exchange.worker_cpu_s
    serving_s = (exchange.host_up_s + exchange.host_down_s).sum(axis=1)
    busy_s[np.arange(hosts.size), hosts] += serving_s + applied_s / np.maximum(1.0, devices.cores[hosts])
    busy = np.where(members, np.minimum(1.0, busy_s / round_s[:, None]), 0.0)
    remote = members & (np.arange(len(inputs.names)) != hosts[:, None])
    computing = _most(ready_s, members) / round_s
    waits_s = np.stack([
        _most(exchange.up_s + exchange.down_s, members),
        (exchange.carried_in_s + exchange.carried_out_s).sum(axis=1),
        serving_s + applied_s,
    ], axis=1)  # fmt: skip
    shares = np.zeros((hosts.size, 4))
    shares[:, COMPUTE] = computing
    shares[:, COMPUTE + 1 :] = (1 - computing)[:, None] * waits_s / waits_s.sum(axis=1, keepdims=True)
    sent_bytes = np.where(remote, float(inputs.message.up + inputs.message.down), 0.0)
    return Cycles(np.where(members, round_s[:, None], np.inf), busy, shares, sent_bytes)


def _carried_s(ready_s: Floats, demand_s: Floats, members: Bools) -> Floats:
    """(C,) seconds until a server that never rests has done all: the latest of ready + to come."""
    order = np.argsort(ready_s, axis=1)
    to_come_s = np.cumsum(np.take_along_axis(demand_s, order, axis=1)[:, ::-1], axis=1)[:, ::-1]
    done_s = np.take_along_axis(ready_s, order, axis=1) + to_come_s
    return _most(done_s, np.take_along_axis(members, order, axis=1))


def _most(values: Floats, members: Bools) -> Floats:
    return np.where(members, values, 0.0).max(axis=1)


def _step(inputs: Inputs, ranked: Ints, gradient_s: Floats) -> Step:
    """A step of M sets of n peers. ranked, gradient_s: (M, n)."""
    sync, whole = inputs.strategy.sync, traffic.of(inputs.strategy.topology, ranked.shape[1])
    peers = among.of_sets(inputs, ranked, gradient_s)
    load = whole.scaled(np.minimum(1.0, among.fitting(inputs, peers, whole)))
    waits_for_all = sync.waits_for(ranked.shape[1]) > 1
    step_s = _synchronous(peers, load, not sync.backups) if waits_for_all else _at_equal_rates(peers, load)
    shares = load.shares
    busy_s = peers.ready_s + peers.after_s(shares) + peers.order_s + peers.handling_s(shares[:, None])[:, 0]
    return Step(np.broadcast_to(step_s[:, None], ranked.shape), busy_s, shares.sum(axis=2))


def _synchronous(peers: Peers, load: Traffic, wait_for_all: bool) -> Floats:
    """(M,) seconds of a step of members that wait for all others, or the first messages to come."""
    ready_s = peers.ready_s[:, None]  # (M, steps, n), as all below
    for shares, chained in load.phases:
        sending_s = peers.sending_s(shares)
        if chained:
            more = chained - shares.max()  # beyond the latency that sending_s includes
            latency_s = np.where(shares > 0, peers.latency_s[:, None], 0.0).max(axis=(2, 3))
            ready_s = (
                ready_s.max(axis=2, keepdims=True) + more * latency_s[..., None] + np.zeros_like(peers.ready_s[:, None])
            )
        ends_s = [ready_s + sending_s.max(axis=3), ready_s + peers.handling_s(shares)]
        if wait_for_all:
            arrives_s = np.where(shares > 0, ready_s[..., None] + sending_s, 0.0)
            ends_s += [arrives_s.max(axis=2), _backlog_s(peers, shares, ready_s)]
        ready_s = functools.reduce(np.maximum, ends_s)
    return (ready_s + peers.after_s(load.shares)[:, None]).max(axis=2).mean(axis=1)


def _backlog_s(peers: Peers, shares: Floats, begun_s: Floats) -> Floats:
    """(M, steps, n) seconds until an inward link that never rests has carried all messages."""
    from_then_on = (begun_s[:, :, None, :] >= begun_s[:, :, :, None]).astype(np.float64)
    carried_s = np.matmul(from_then_on, shares) * peers.in_s[:, None, None]
    return np.where(carried_s > 0, begun_s[..., None] + carried_s, 0.0).max(axis=2)


def _at_equal_rates(peers: Peers, load: Traffic) -> Floats:
    """(M,) seconds of a step of members that send while they compute, as fast as the slowest."""
    shares = load.phases[0].shares
    handled_s = peers.computes * peers.handling_s(load.shares[:, None])[:, 0]
    links_s = np.maximum(peers.sending_s(shares).max(axis=3), shares.sum(axis=2) * peers.in_s[:, None]).mean(axis=1)
    return np.maximum(peers.ready_s + peers.after_s(load.shares) + handled_s, links_s).max(axis=1)
