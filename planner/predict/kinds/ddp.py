"""Ranks of torch.distributed, whose exchange overlaps with the backward pass.

The problem: find the seconds from one step of DistributedDataParallel to the next. A bucket
(``buckets``) is reduced once all members have it and the one before is done, while the backward
pass goes on. So the slowest member sets the pace, and what is left of the exchange after its
backward pass is what a step takes longer. Where processors compute, the thread that exchanges has
the share of one thread among those of the backward pass, and this loses what it takes.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from planner.arrays import Floats, Ints
from planner.predict.buckets import Bucket
from planner.predict.clusters import Candidates
from planner.predict.inputs import Inputs
from planner.predict.kinds import collectives
from planner.predict.kinds.collectives import (
    Collective,
    Duration,
    Network,
    Transport,
    duration,
    of_message,
)
from planner.predict.kinds.cycles import Cycles
from planner.predict.kinds.peers import Step
from planner.predict.kinds.peers import solve as solve_peers

#: Part of what a ring brings that is added; the rest are sums, which replace what was there.
ADDED = 1 / 2
#: gloo cuts what a member sends in a hop into at least so many messages.
GLOO_MESSAGES = 2


class Work(NamedTuple):
    """What n members do in a step.

    gradient_s: (n,) seconds of the forward and backward pass.
    update_s: (n,) seconds between two of them: of the optimizer, and until the next batch is read.
    alone, beside: processor seconds of a byte where nothing is computed, and those that a
        computation lacks beside it.
    hop_cpu_s: (n,) processor seconds of a hop at a member, besides those of its bytes.
    delay: (n,) seconds that a computation there loses by one of these; 0 on an accelerator.
    """

    gradient_s: Floats
    update_s: Floats
    alone: "ByteCosts"
    beside: "ByteCosts"
    hop_cpu_s: Floats
    delay: Floats


class ByteCosts(NamedTuple):
    """Processor seconds of a byte at either end, (n, n) [from, to]; to receive is also to add."""

    send_s: Floats
    receive_s: Floats

    def of(self, shares: Floats) -> Floats:
        """(n,) of a member, where members send one another these shares of a byte."""
        handled_s: Floats = (shares * self.send_s).sum(axis=1) + (shares * self.receive_s).sum(axis=0)
        return handled_s


class SynchronousStep(NamedTuple):
    """A step of n members that wait for one another.

    step_s: seconds from one step to the next.
    busy_s: (n,) that each member works.
    sent_bytes: (n, n) [from, to].
    """

    step_s: float
    busy_s: Floats
    sent_bytes: Floats


class CollectiveCost(NamedTuple):
    """A collective: its links' share of a byte, seconds, and (n,) processor seconds.

    empty_cpu_s: of an empty message. alone_s_per_byte, beside_s_per_byte: as in ``Work``.
    """

    shares: Floats
    takes: Duration
    empty_cpu_s: Floats
    alone_s_per_byte: Floats
    beside_s_per_byte: Floats

    def alone(self, work: Work, message_bytes: float) -> tuple[float, Floats]:
        """Its seconds where nothing is computed meanwhile, and (n,) processor seconds."""
        cpu_s = self.empty_cpu_s + self.alone_s_per_byte * message_bytes
        return max(self.takes.of(message_bytes), float((cpu_s * _per_cpu_s(work)).max())), cpu_s


def synchronous(work: Work, made: Sequence[Bucket], transport: Transport, network: Network) -> SynchronousStep:
    """A step of DistributedDataParallel; that of a member alone sends nothing."""
    n = work.gradient_s.size
    reductions: dict[bool, CollectiveCost] = {}
    sent_bytes, handled_s, delay_s, end_s = np.zeros((n, n)), np.zeros(n), np.zeros(n), 0.0
    # A step begins with what follows the exchange of the one before: the rest of its gradient, such
    # as scaling all of it, and the update.
    last = np.max([np.broadcast_to(bucket.ready, n) for bucket in made], axis=0)
    before_s = work.update_s + (1 - last) * work.gradient_s
    all_s = work.update_s + work.gradient_s
    for bucket in made:
        message_bytes = bucket.message_bytes / bucket.messages
        small = message_bytes < transport.tree_below_bytes
        if small not in reductions:
            reductions[small] = exchange(work, transport, network, of_message(transport, n, message_bytes))
        shares, takes, empty_cpu_s, *s_per_byte = reductions[small]
        alone_s, beside_s = (empty_cpu_s * bucket.messages + each * bucket.message_bytes for each in s_per_byte)
        link_s = takes.hops_s * bucket.messages + takes.s_per_byte * bucket.message_bytes
        begin_s = max(end_s, float((before_s + bucket.ready * work.gradient_s + delay_s).max()))
        left_s = (all_s + delay_s - begin_s).clip(0.0)
        during_s, lost_s, spent_s = _beside_computing(work, left_s, link_s, alone_s, beside_s)
        end_s, delay_s = begin_s + during_s, delay_s + lost_s
        sent_bytes += shares * bucket.message_bytes
        handled_s += spent_s * work.delay
    computed_s = all_s + delay_s
    busy_s = work.update_s + work.gradient_s + handled_s
    step_s = max(end_s, float(computed_s.max()))
    busy_s = np.minimum(busy_s, step_s)
    return SynchronousStep(step_s, busy_s, sent_bytes)


def exchange(work: Work, transport: Transport, network: Network, made: Collective) -> CollectiveCost:
    """A hop begins when the processors are done with the one before."""
    shares = made.shares
    hops_s, s_per_byte = duration(transport, network, made)
    hops_s += made.hops * float((work.hop_cpu_s * _per_cpu_s(work)).max())
    takes = Duration(hops_s, s_per_byte)
    return CollectiveCost(shares, takes, made.hops * work.hop_cpu_s, work.alone.of(shares), work.beside.of(shares))


def _beside_computing(
    work: Work, left_s: Floats, link_s: float, alone_cpu_s: Floats, beside_cpu_s: Floats
) -> tuple[float, Floats, Floats]:
    """An all-reduce that begins now: its seconds, those that computing loses, processor seconds.

    left_s: (n,) seconds of computing that the members still have before them.
    alone_cpu_s, beside_cpu_s: (n,) processor seconds of all of it, as in ``Work``.
    """
    alone_s = max(link_s, float((alone_cpu_s * _per_cpu_s(work)).max()))
    beside_s = max(link_s, float((beside_cpu_s * _per_shared_cpu_s(work)).max()))
    if not beside_s:
        return 0.0, np.zeros_like(left_s), np.zeros_like(left_s)
    lost = work.delay * beside_cpu_s / beside_s  # a second, while both go on: less than one
    until_s = left_s / (1 - lost)
    last_s = min(beside_s, float(until_s.max()))
    during_s = last_s + (1 - last_s / beside_s) * alone_s
    both_s = until_s.clip(0.0, last_s)
    share = both_s / beside_s
    return during_s, lost * both_s, share * beside_cpu_s + (1 - share) * alone_cpu_s


def _per_shared_cpu_s(work: Work) -> Floats:
    """(n,) as ``_per_cpu_s``, beside a computation whose threads have equal shares of the cores."""
    cores = np.divide(1.0, work.delay, out=np.ones_like(work.delay), where=work.delay > 0)
    return np.maximum(1.0, (np.floor(cores).clip(1.0) + 1.0) * work.delay)


def _per_cpu_s(work: Work) -> Floats:
    """(n,) seconds that a processor second of the exchange takes at least: it is one thread's."""
    return np.maximum(1.0, work.delay)


def cycles(inputs: Inputs, candidates: Candidates, gradient_s: Floats) -> Cycles:
    """Cycles of all clusters. gradient_s: (C, N)."""
    return solve_peers(inputs, candidates, gradient_s, of_ranks(_step))


#: A step of the ranks of one cluster: of all inputs, and what there is of these ranks.
StepOfRanks = Callable[[Inputs, Ints, Work, Transport, Network], SynchronousStep]


def of_ranks(step_of: StepOfRanks) -> Callable[[Inputs, Ints, Floats], Step]:
    """A step of M sets of n ranks, as ``peers.solve`` asks for, by that of each set."""

    def steps(inputs: Inputs, ranked: Ints, gradient_s: Floats) -> Step:
        cycle_s, busy_s, sent = np.zeros((3, *ranked.shape))
        for at, (members, each_s) in enumerate(zip(ranked, gradient_s, strict=True)):
            step = step_of(inputs, members, *surroundings(inputs, members, each_s))
            cycle_s[at], busy_s[at] = step.step_s, step.busy_s
            sent[at] = step.sent_bytes.sum(axis=1) / inputs.message.up
        return Step(cycle_s, busy_s, sent)

    return steps


def surroundings(inputs: Inputs, members: Ints, gradient_s: Floats) -> tuple[Work, Transport, Network]:
    """What n ranks do in a step whose gradients take them (n,) seconds, and over what."""
    assert inputs.torch is not None, "the engine is torch.distributed"
    uses_nccl = inputs.engine.backend != "gloo" and bool(inputs.torch.nccl[members].all())
    transport = collectives.NCCL if uses_nccl else collectives.GLOO
    return _work(inputs, members, gradient_s, uses_nccl), transport, _network(inputs, members)


def _step(inputs: Inputs, members: Ints, work: Work, transport: Transport, network: Network) -> SynchronousStep:
    assert inputs.torch is not None, "the engine is torch.distributed"
    made = [bucket._replace(ready=np.asarray(bucket.ready)[members]) for bucket in inputs.torch.buckets]
    return synchronous(work, made, transport, network)


def _work(inputs: Inputs, ranked: Ints, gradient_s: Floats, uses_nccl: bool) -> Work:
    """What the members do in a step; NCCL's threads are in its constants.

    A computation was timed beside encrypted messages: beside plain ones it lacks as much less as
    encrypting costs.
    """
    devices, pairs, around = inputs.devices, inputs.pairs, np.ix_(ranked, ranked)
    alone = beside = ByteCosts(*np.zeros((2, ranked.size, ranked.size)))
    hop_cpu_s = np.zeros(ranked.size)
    if not uses_nccl:
        added_s = (ADDED * devices.add_s + devices.copy_s)[ranked] / inputs.message.up
        send, receive = pairs.send_plain_per_byte[around], pairs.receive_plain_per_byte[around]
        send_saved = pairs.send_cpu_per_byte[around] - send
        receive_saved = pairs.receive_cpu_per_byte[around] - receive
        alone = ByteCosts(send, receive + added_s)
        beside = ByteCosts(
            np.maximum(send, pairs.send_stolen_per_byte[around] - send_saved),
            np.maximum(receive, pairs.receive_stolen_per_byte[around] - receive_saved) + added_s,
        )
        received_s = pairs.receive_cpu_s[np.roll(ranked, 1), ranked]
        hop_cpu_s = GLOO_MESSAGES * (received_s + pairs.send_cpu_s[ranked, np.roll(ranked, -1)])
    assert inputs.torch is not None, "the engine is torch.distributed"
    own_s = inputs.torch.own_cpu_s / np.minimum(1.0, devices.cores)  # of one thread
    data_s = gradient_s * (devices.data_s / devices.gradient_s)[ranked]  # before the forward pass
    return Work(
        gradient_s=gradient_s - data_s,
        update_s=(devices.update_s + own_s)[ranked] + data_s,
        alone=alone,
        beside=beside,
        hop_cpu_s=hop_cpu_s,
        delay=np.where(devices.cpu_s > 0, 1 / devices.cores, 0.0)[ranked],
    )


def _network(inputs: Inputs, ranked: Ints) -> Network:
    around = np.ix_(ranked, ranked)
    return Network(
        bytes_per_s=inputs.pairs.bytes_per_s[around],
        out_bytes_per_s=inputs.devices.out_bytes_per_s[ranked],
        in_bytes_per_s=inputs.devices.in_bytes_per_s[ranked],
        latency_s=inputs.pairs.latency_s[around],
    )
