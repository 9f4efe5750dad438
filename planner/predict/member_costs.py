"""Member costs are the seconds in which members of a cluster of peers compute, send and receive."""

from typing import NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.predict.costs import Costs
from planner.predict.traffic import Traffic


class MemberCosts(NamedTuple):
    """Seconds of n members, by rank: (n,) each, or (n, n) [from, to] of a whole message.

    ready_s: (n,) until a member begins to send in a step.
    gradient_s, service_s, add_s: (n,) of its gradient, its update, and of adding one message.
    after_s: (n,) of the update and of adding all messages of a synchronous step.
    order_s: (n,) of its processor, to take the order of a step and to report it: to receive a
        message and to send another, whatever they carry.
    computes: (n,) whether it computes on the processor, which messages then steal from.
    out_s, in_s: (n,) of a message on its link, out and in, all peers at once.
    alone_s, latency_s: (n, n) of a message, and an empty one, without other traffic.
    send_s, receive_s: (n, n) that a message steals from its sender's and receiver's computation.
    """

    ready_s: Floats
    gradient_s: Floats
    service_s: Floats
    add_s: Floats
    after_s: Floats
    order_s: Floats
    computes: Bools
    out_s: Floats
    in_s: Floats
    alone_s: Floats
    latency_s: Floats
    send_s: Floats
    receive_s: Floats

    def paced(self, pace: float) -> "MemberCosts":
        """The same in steps whose gradients take so many times as long."""
        return self._replace(ready_s=self.ready_s + (pace - 1) * self.gradient_s)

    def sending_s(self, shares: Floats) -> Floats:
        """(steps, n, n) seconds until a message that is sent along with others has arrived."""
        alone_s = np.where(shares > 0, shares * self.alone_s, 0.0)
        together_s = (shares.sum(axis=2) * self.out_s)[:, :, None]
        return np.where(shares > 0, np.maximum(alone_s, together_s), 0.0)

    def delay_s(self, shares: Floats, ready_s: Floats, sending_s: Floats) -> Floats:
        """(steps, n) seconds by which messages that arrive during a computation delay it."""
        before_s = np.broadcast_to(ready_s[:, None, :] - ready_s[:, :, None], sending_s.shape)
        part = np.divide(before_s, sending_s, out=np.zeros_like(sending_s), where=sending_s > 0).clip(0.0, 1.0)
        return (shares * part * self.receive_s).sum(axis=1) * self.computes

    def handling_s(self, shares: Floats) -> Floats:
        """(steps, n) processor seconds of all that a member sends and receives."""
        return (shares * self.send_s).sum(axis=2) + (shares * self.receive_s).sum(axis=1)

    def hops_s(self, shares: Floats, chained: int) -> Floats:
        """(steps, n) seconds of the processors of a ring's members, besides the bytes of messages.

        shares, chained: of its phase (``traffic``). Each message that follows another one is
        received, and the next is sent.
        """
        return chained * np.where(shares.sum(axis=2) > 0, self.order_s, 0.0)

    def backlog_s(self, shares: Floats, begun_s: Floats) -> Floats:
        """(steps, n) seconds until an inward link that never rests has carried all messages.

        shares, begun_s: (steps, m, n) and (steps, m), of any number of senders.
        """
        from_then_on = (begun_s[:, None, :] >= begun_s[:, :, None]).astype(float)
        carried_s = np.matmul(from_then_on, shares) * self.in_s
        return np.where(carried_s > 0, begun_s[:, :, None] + carried_s, 0.0).max(axis=1)


def of_members(costs: Costs, ranked: Ints, load: Traffic) -> MemberCosts:
    """Costs of the members of one cluster.

    ranked: (n,) their devices, in the order of ranks; load: whole messages.
    """
    devices, pairs = costs.devices, costs.pairs
    around = np.ix_(ranked, ranked)
    apart = ~np.eye(ranked.size, dtype=bool)
    gradient_s = devices.gradient_s[ranked]
    messages = ranked.size - 1 if costs.strategy.compressor.by_link else 1  # each link has a compressor of its own
    return MemberCosts(
        ready_s=gradient_s + (devices.copy_s + messages * devices.encode_s)[ranked],
        gradient_s=gradient_s,
        service_s=devices.service_s[ranked],
        add_s=devices.add_s[ranked],
        after_s=devices.service_s[ranked] + load.shares.sum(axis=0) * devices.add_s[ranked],
        order_s=np.diagonal(pairs.order_cpu_s)[ranked] / np.minimum(1.0, devices.cores[ranked]),
        computes=devices.step_cpu_s[ranked] > 0,
        out_s=costs.up_bytes / devices.out_bytes_per_s[ranked],
        in_s=costs.up_bytes / devices.in_bytes_per_s[ranked],
        alone_s=np.where(apart, pairs.up_s[around], 0.0),
        latency_s=np.where(apart, pairs.latency_s[around], 0.0),
        send_s=pairs.send_stolen_cpu_s[around] / devices.cores[ranked, None],
        receive_s=pairs.receive_stolen_cpu_s[around] / devices.cores[None, ranked],
    )
