"""Peers of equally many members: what each computes, sends and receives, by rank.

Clusters of n members are solved together: arrays have the axes (sets, n), or (sets, n, n)
[from, to] for messages. The members of a cluster are ranked by name.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.predict.clusters import Candidates
from planner.predict.inputs import Inputs
from planner.predict.kinds.cycles import Cycles, order_cpu_s, peers_bottleneck
from planner.predict.traffic import Traffic


class Peers(NamedTuple):
    """Seconds of M sets of n members, (M, n) each, or (M, n, n) [from, to] of a whole message.

    gradient_s: of a gradient; ready_s: until a member begins to send.
    service_s, add_s: of its update, and of adding one message.
    order_s: of its processor, to take the order of a step and to report it.
    computes: whether it computes on the processor, which messages then steal from.
    out_s, in_s: of a message on its link, out and in, all peers at once.
    alone_s, latency_s: of a message, and of an empty one, without other traffic.
    send_s, receive_s: that a message steals from its sender's and its receiver's computation.
    """

    gradient_s: Floats
    ready_s: Floats
    service_s: Floats
    add_s: Floats
    order_s: Floats
    computes: Bools
    out_s: Floats
    in_s: Floats
    alone_s: Floats
    latency_s: Floats
    send_s: Floats
    receive_s: Floats

    def sending_s(self, shares: Floats) -> Floats:
        """(M, steps, n, n) seconds until messages have arrived that a member sends at once.

        shares: (M or 1, steps, n, n) of a whole message.
        """
        alone_s = np.where(shares > 0, shares * self.alone_s[:, None], 0.0)
        together_s = (shares.sum(axis=3) * self.out_s[:, None])[..., None]
        return np.where(shares > 0, np.maximum(alone_s, together_s), 0.0)

    def handling_s(self, shares: Floats) -> Floats:
        """(M, steps, n) seconds that a member's processors have with all it sends and receives."""
        return (shares * self.send_s[:, None]).sum(axis=3) + (shares * self.receive_s[:, None]).sum(axis=2)

    def after_s(self, shares: Floats) -> Floats:
        """(M, n) seconds of an update, after all messages of a step are added up.

        shares: (M or 1, n, n) in a step.
        """
        return self.service_s + shares.sum(axis=1) * self.add_s


class Step(NamedTuple):
    """A step of the members of M sets, (M, n) each; sent: whole messages, busy_s: at full load."""

    cycle_s: Floats
    busy_s: Floats
    sent: Floats


def solve(
    inputs: Inputs, candidates: Candidates, gradient_s: Floats, step: Callable[[Inputs, Ints, Floats], Step]
) -> Cycles:
    """Cycles of all clusters, solved by ``step`` for those of equally many members at a time.

    gradient_s: (C, N). step: of inputs, ranked devices (M, n) and their gradients' seconds (M, n).
    """
    members = candidates.members(len(inputs.names))
    cycle_s, busy, sent = np.full(members.shape, np.inf), np.zeros(members.shape), np.zeros(members.shape)
    for rows, ranked in by_size(inputs, members):
        at = rows[:, None], ranked
        found = step(inputs, ranked, gradient_s[at])
        cycle_s[at], sent[at] = found.cycle_s, found.sent
        busy[at] = np.minimum(1.0, found.busy_s / found.cycle_s)
    return Cycles(cycle_s, busy, peers_bottleneck(busy, members), sent * inputs.message.up)


def by_size(inputs: Inputs, members: Bools) -> Iterator[tuple[Ints, Ints]]:
    """For each n > 1: rows of the clusters of n members, (M,), and their ranked devices, (M, n)."""
    by_rank = np.array(sorted(range(len(inputs.names)), key=lambda i: inputs.names[i]))
    count = members.sum(axis=1)
    for n in np.unique(count[count > 1]).tolist():
        rows = np.flatnonzero(count == n)
        places = np.nonzero(members[rows][:, by_rank])[1].reshape(-1, n)
        yield rows, by_rank[places]


def of_sets(inputs: Inputs, ranked: Ints, gradient_s: Floats) -> Peers:
    """Those of sets of n devices, (M, n), whose gradients take (M, n) seconds."""
    devices, up = inputs.devices, inputs.message.up
    n = ranked.shape[1]
    around, apart = (ranked[:, :, None], ranked[:, None, :]), ~np.eye(n, dtype=bool)
    messages = n - 1 if inputs.strategy.compressor.by_link else 1  # each link has a compressor of its own
    return Peers(
        gradient_s=gradient_s,
        ready_s=gradient_s + (devices.copy_s + messages * devices.encode_s)[ranked],
        service_s=devices.service_s[ranked],
        add_s=devices.add_s[ranked],
        order_s=(order_cpu_s(inputs) / np.minimum(1.0, devices.cores))[ranked],
        computes=devices.cpu_s[ranked] > 0,
        out_s=up / devices.out_bytes_per_s[ranked],
        in_s=up / devices.in_bytes_per_s[ranked],
        alone_s=np.where(apart, inputs.pairs.seconds(up)[around], 0.0),
        latency_s=np.where(apart, inputs.pairs.latency_s[around], 0.0),
        send_s=inputs.pairs.stolen_by_sending_s(up)[around] / devices.cores[ranked][:, :, None],
        receive_s=inputs.pairs.stolen_by_receiving_s(up)[around] / devices.cores[ranked][:, None, :],
    )


def fitting(inputs: Inputs, peers: Peers, whole: Traffic) -> Floats:
    """(M, n, n) shares of a message that links carry while its sender computes; 1 for all of it.

    Compressors by link (DLion, section 3.3; Ako) send that much: the rate that a link has where all
    send without a pause, times the seconds of the sender's gradient.
    """
    if not inputs.strategy.compressor.by_link:
        return np.ones_like(peers.alone_s)
    shares = whole.phases[0].shares
    in_s = np.where(shares > 0, shares.sum(axis=2, keepdims=True) * peers.in_s[:, None, None], 0.0)
    message_s = np.maximum(peers.sending_s(shares), in_s).mean(axis=1)
    fits = np.divide(peers.gradient_s[:, :, None], message_s, out=np.full_like(message_s, np.inf), where=message_s > 0)
    return np.asarray(fits)
