"""Peers that wait for nobody: each goes on, and messages come and go beside its computing.

The problem: find the cycle T_i of each member with

    T_i = max(busy_i / (1 - stolen_i), out_i, held_i),

where busy_i are the seconds of its own work, stolen_i = sum_j (c_ji + a_i) / T_j the share of its
time that the messages of others take, c_ji to receive and a_i to add one, out_i the seconds in
which its own messages leave, and held_i those that receivers hold them back, whose links or
processors are full. Members that ask another and wait for its answer (AD-PSGD) have

    T_i = own_i + sum_j q_ij (there and back + what the request meets at the link of j).

Both are iterated to their fixed point, for all sets of equally many members at once.
"""

import functools

import numpy as np

from planner.arrays import Floats, Ints
from planner.predict import traffic
from planner.predict.clusters import Candidates
from planner.predict.inputs import Inputs
from planner.predict.kinds import peers as among
from planner.predict.kinds.async_server import MOST_STOLEN
from planner.predict.kinds.cycles import Cycles
from planner.predict.kinds.peers import Peers, Step
from planner.predict.traffic import Traffic

#: After these iterations cycles change no more.
ITERATIONS = 10


def cycles(inputs: Inputs, candidates: Candidates, gradient_s: Floats) -> Cycles:
    """Cycles of all clusters. gradient_s: (C, N)."""
    return among.solve(inputs, candidates, gradient_s, _step)


def _step(inputs: Inputs, ranked: Ints, gradient_s: Floats) -> Step:
    """A step of M sets of n peers. ranked, gradient_s: (M, n)."""
    peers = among.of_sets(inputs, ranked, gradient_s)
    whole = traffic.of(inputs.strategy.topology, ranked.shape[1])
    return _asking(peers, whole) if whole.answers else _sending(peers, whole, among.fitting(inputs, peers, whole))


def _sending(peers: Peers, whole: Traffic, fits: Floats) -> Step:
    """Members that send while they compute. fits: (M, n, n) shares of messages that links carry.

    A gradient that messages slow leaves room for more, by the factor ``stretch``.
    """
    undisturbed_s = peers.ready_s + peers.service_s + peers.order_s
    received_s = peers.receive_s * peers.computes[:, None]
    cycle_s, stretch = undisturbed_s, np.ones_like(undisturbed_s)
    for _ in range(ITERATIONS):
        load = whole.scaled(np.minimum(1.0, fits * stretch[..., None]))
        shares = load.shares
        outward_s = peers.sending_s(load.phases[0].shares).max(axis=3).mean(axis=1)
        own_s = undisturbed_s + (shares * peers.send_s).sum(axis=2) * peers.computes
        per_s = shares / cycle_s[..., None]
        slowed = (per_s * received_s).sum(axis=1)
        stolen = slowed + (per_s * peers.add_s[:, None]).sum(axis=1)
        busy_s = own_s / (1 - np.minimum(stolen, MOST_STOLEN))
        stretch = own_s / undisturbed_s / (1 - np.minimum(slowed, MOST_STOLEN))
        fullest = np.maximum((per_s * peers.in_s[:, None]).sum(axis=1), stolen / MOST_STOLEN)
        held_s = cycle_s * np.where(shares > 0, fullest[:, None], 0.0).max(axis=2)
        cycle_s = functools.reduce(np.maximum, (busy_s, outward_s, held_s))
    return Step(cycle_s, busy_s, shares.sum(axis=2))


def _asking(peers: Peers, whole: Traffic) -> Step:
    """Members that ask others and wait for their answers.

    One that is asked computes on while its processor also answers. At its link a request meets
    others as often as they use it.
    """
    requests = whole.shares
    after_s = peers.after_s(requests)
    both_ways_s = peers.alone_s + peers.alone_s.transpose(0, 2, 1) + after_s[:, None]
    own_s = cycle_s = peers.ready_s + after_s + peers.order_s
    for _ in range(ITERATIONS):
        used = requests * peers.in_s[:, None] / cycle_s[..., None]
        met_s = (used.sum(axis=1, keepdims=True) - used) * (peers.in_s + peers.out_s)[:, None]
        cycle_s = own_s + (requests * (both_ways_s + met_s)).sum(axis=2)
    handled_s = peers.computes[:, None] * (peers.receive_s + peers.send_s.transpose(0, 2, 1)) + after_s[:, None]
    stolen = (requests / cycle_s[..., None] * handled_s).sum(axis=1)
    asks = requests.sum(axis=2) > 0
    cycle_s = np.where(asks, cycle_s, cycle_s / (1 - np.minimum(stolen, MOST_STOLEN)))
    answered = (requests / cycle_s[..., None]).sum(axis=1) * cycle_s
    both = (requests + requests.transpose(0, 2, 1))[:, None]
    return Step(cycle_s, own_s + peers.handling_s(both)[:, 0], requests.sum(axis=2) + answered)
