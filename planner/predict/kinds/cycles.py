"""Cycles: what a gradient, its exchange and its update take each worker of a cluster."""

from typing import NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.predict.inputs import Inputs

#: What a cycle's time goes to; the largest share is the cluster's bottleneck.
COMPUTE, SLOW_LINK, SERVER_LINK, SERVER_CPU = range(4)
BOTTLENECKS = ("compute", "slow link", "server link", "server CPU")


class Cycles(NamedTuple):
    """Steady state of C clusters of N devices.

    cycle_s: (C, N), T_i^C of Eq. 2, infinite where a device is no member.
    busy: (C, N), share of the time that a device works at full load.
    shares: (C, 4), of the workers' time by BOTTLENECKS, summing to 1.
    network_bytes: (C, N), of one step of a device.
    """

    cycle_s: Floats
    busy: Floats
    shares: Floats
    network_bytes: Floats


class Served(NamedTuple):
    """What an exchange of a worker with a server takes, (C, N) each, where nobody else exchanges.

    up_s, down_s: seconds to the server and back; within a device at least its processor's, which
        on one core are all.
    worker_cpu_s: seconds at full load that the worker has with it.
    host_up_s, host_down_s: seconds that the server's processors have with each direction.
    carried_in_s, carried_out_s: seconds of the server's link; 0 within a device.
    """

    up_s: Floats
    down_s: Floats
    worker_cpu_s: Floats
    host_up_s: Floats
    host_down_s: Floats
    carried_in_s: Floats
    carried_out_s: Floats


def served(inputs: Inputs, members: Bools, hosts: Ints) -> Served:
    """Exchanges with servers on ``hosts``, (C,), of ``members``, (C, N); 0 for no member.

    Each has two messages and an order. The server's processor pays its end of all of them, and both
    ends of those of the worker beside it, which does not compute during its own messages.
    """
    pairs, devices, (up, down) = inputs.pairs, inputs.devices, inputs.message[:2]
    order_s = order_cpu_s(inputs)
    local = np.arange(len(inputs.names)) == hosts[:, None]
    cores = devices.cores[hosts, None]

    def to_server(values: Floats) -> Floats:
        return values.T[hosts]

    up_s, down_s = to_server(pairs.seconds(up)), pairs.seconds(down)[hosts]
    worker_cpu_s = to_server(pairs.sending_s(up)) + pairs.receiving_s(down)[hosts]
    host_up_s = np.where(local, to_server(pairs.sending_s(up)), 0.0) + to_server(pairs.stolen_by_receiving_s(up))
    host_down_s = np.where(local, pairs.receiving_s(down)[hosts], 0.0) + pairs.stolen_by_sending_s(down)[hosts]
    host_up_s = (host_up_s + order_s[hosts, None] / 2) / cores
    host_down_s = (host_down_s + order_s[hosts, None] / 2) / cores
    found = Served(
        up_s=np.where(local, np.maximum(host_up_s, np.where(cores > 1, up_s, 0.0)), up_s),
        down_s=np.where(local, np.maximum(host_down_s, np.where(cores > 1, down_s, 0.0)), down_s),
        worker_cpu_s=np.where(local, 0.0, (worker_cpu_s + order_s) / devices.cores),
        host_up_s=host_up_s,
        host_down_s=host_down_s,
        carried_in_s=np.where(
            local, 0.0, np.minimum(up / devices.in_bytes_per_s[hosts, None], to_server(pairs.seconds(up)))
        ),
        carried_out_s=np.where(
            local, 0.0, np.minimum(down / devices.out_bytes_per_s[hosts, None], pairs.seconds(down)[hosts])
        ),
    )
    return Served(*(np.where(members, each, 0.0) for each in found))


def order_cpu_s(inputs: Inputs) -> Floats:
    """(N,) processor seconds of an end that takes an order and reports on it."""
    cost_s: Floats = np.diagonal(inputs.pairs.send_cpu_s + inputs.pairs.receive_cpu_s)
    return cost_s


def peers_bottleneck(busy: Floats, members: Bools) -> Floats:
    """(C, 4) shares among peers, where what is no computing is a link that is slow for its load."""
    shares = np.zeros((len(busy), len(BOTTLENECKS)))
    shares[:, COMPUTE] = np.where(members, busy, 0.0).sum(axis=1) / members.sum(axis=1)
    shares[:, SLOW_LINK] = 1 - shares[:, COMPUTE]
    return shares
