"""A step of data-parallel training overlaps the backward pass with the all-reduces of its buckets.

DistributedDataParallel puts gradients into buckets in the order in which the backward pass makes
them, from the last variable to the first. A bucket is reduced once all members have it and the one
before is done, while the backward pass goes on. So the slowest member sets the pace, and what is
left of the exchange after the backward pass is what a step takes longer. Where processors compute,
the thread that exchanges has the share of one thread among those of the backward pass, and this
loses what it takes.

Local updates (local SGD, DiLoCo) exchange all weights between two steps, without any overlap.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from planner.arrays import Floats
from planner.predict.collectives import Collective, Duration, Network, Transport, all_reduce_s, duration, of_message

#: Buckets of DistributedDataParallel: one is closed by the variable that fills it.
FIRST_BUCKET_BYTES, BUCKET_BYTES = 1 << 20, 25 << 20
#: Part of a gradient that is the forward pass: the backward pass multiplies twice by each weight,
#: once for the gradient of the weights and once for that of the layer's input.
FORWARD = 1 / 3


class Bucket(NamedTuple):
    """What is reduced at once, ready after a part of the backward pass.

    message_bytes: of all its messages; messages: that follow one another, of equal size.
    """

    message_bytes: float
    passed: float
    messages: int = 1


class Work(NamedTuple):
    """What n members do in a step.

    gradient_s, update_s: (n,) seconds of the forward and backward pass, and of the optimizer.
    send_s_per_byte, receive_s_per_byte: (n, n) [from, to] processor seconds of a byte at either
        end; to receive one is also to add it.
    hop_cpu_s: (n,) processor seconds of a hop at a member, besides those of its bytes.
    delay: (n,) seconds that a computation there loses by one of these; 0 on an accelerator.
    """

    gradient_s: Floats
    update_s: Floats
    send_s_per_byte: Floats
    receive_s_per_byte: Floats
    hop_cpu_s: Floats
    delay: Floats


class SynchronousStep(NamedTuple):
    """A step of n members that wait for one another.

    step_s: seconds from one step to the next; exposed_s: those in which no member computes.
    busy_s: (n,) that each member works.
    sent_bytes: (n, n) [from, to].
    """

    step_s: float
    exposed_s: float
    busy_s: Floats
    sent_bytes: Floats


class _Reduction(NamedTuple):
    """An all-reduce: its links' share of a byte, seconds, and (n,) processor seconds.

    handling_s: of an empty message.
    """

    shares: Floats
    takes: Duration
    handling_s: Floats
    handling_s_per_byte: Floats


def buckets(layers: Sequence[int], bytes_per_element: float = 4.0) -> list[Bucket]:
    """The buckets of a model.

    layers: elements of each trained variable, in the order of the forward pass. Each is taken to be
    an equal part of the backward pass: which layer takes how long was not profiled.
    bytes_per_element: as sent; buckets are cut by the bytes of float32.
    """
    made, held, limit = [], 0, FIRST_BUCKET_BYTES
    for done, elements in enumerate(reversed(layers), start=1):
        held += elements
        if 4 * held >= limit or done == len(layers):
            made.append(Bucket(held * bytes_per_element, done / len(layers)))
            held, limit = 0, BUCKET_BYTES
    return made


def synchronous(work: Work, made: Sequence[Bucket], transport: Transport, network: Network) -> SynchronousStep:
    """A step of DistributedDataParallel; that of a member alone sends nothing."""
    n = work.gradient_s.size
    reductions: dict[bool, _Reduction] = {}
    sent_bytes, handled_s, delay_s, end_s = np.zeros((n, n)), np.zeros(n), np.zeros(n), 0.0
    forward_s = work.update_s + FORWARD * work.gradient_s  # a step begins with the update of the one before
    backward_s = (1 - FORWARD) * work.gradient_s
    for bucket in made:
        message_bytes = bucket.message_bytes / bucket.messages
        small = message_bytes < transport.tree_below_bytes
        if small not in reductions:
            reductions[small] = _reduction(work, transport, network, of_message(transport, n, message_bytes))
        shares, takes, handling_s, handling_s_per_byte = reductions[small]
        handling_s = handling_s * bucket.messages + handling_s_per_byte * bucket.message_bytes
        link_s = takes.hops_s * bucket.messages + takes.s_per_byte * bucket.message_bytes
        begin_s = max(end_s, float((forward_s + bucket.passed * backward_s + delay_s).max()))
        left_s = (forward_s + backward_s + delay_s - begin_s).clip(0.0)
        during_s, lost_s = _beside_computing(work, left_s, link_s, handling_s)
        end_s, delay_s = begin_s + during_s, delay_s + lost_s
        sent_bytes += shares * bucket.message_bytes
        handled_s += handling_s * work.delay
    computed_s = forward_s + backward_s + delay_s
    step_s = max(end_s, float(computed_s.max()))
    busy_s = np.minimum(forward_s + backward_s + handled_s, step_s)
    return SynchronousStep(step_s, step_s - float(computed_s.max()), busy_s, sent_bytes)


def exchange_s(transport: Transport, network: Network, message_bytes: float) -> float:
    """Seconds of an exchange of all weights between two steps of local updates."""
    return all_reduce_s(transport, network, message_bytes) + transport.copy_s_per_byte * message_bytes


def _reduction(work: Work, transport: Transport, network: Network, made: Collective) -> _Reduction:
    """Of one kind of message. A hop begins when the processors are done with the one before."""
    shares = made.shares
    handling = (shares * work.send_s_per_byte).sum(axis=1) + (shares * work.receive_s_per_byte).sum(axis=0)
    hops_s, s_per_byte = duration(transport, network, made)
    hops_s += made.hops * float((work.hop_cpu_s * _per_cpu_s(work)).max())
    return _Reduction(shares, Duration(hops_s, s_per_byte), made.hops * work.hop_cpu_s, handling)


def _beside_computing(work: Work, left_s: Floats, link_s: float, handling_s: Floats) -> tuple[float, Floats]:
    """Seconds of an all-reduce that begins now, and (n,) seconds that computing loses by it.

    left_s: (n,) seconds of computing that the members still have before them.
    handling_s: (n,) processor seconds of the all-reduce.
    """
    alone_s = max(link_s, float((handling_s * _per_cpu_s(work)).max()))
    beside_s = max(link_s, float((handling_s * _per_shared_cpu_s(work)).max()))
    if not beside_s:
        return 0.0, np.zeros_like(left_s)
    lost = work.delay * handling_s / beside_s  # a second, while both go on: less than one
    until_s = left_s / (1 - lost)
    last_s = min(beside_s, float(until_s.max()))
    during_s = last_s + (1 - last_s / beside_s) * alone_s
    return during_s, lost * until_s.clip(0.0, last_s)


def _per_shared_cpu_s(work: Work) -> Floats:
    """(n,) as ``_per_cpu_s``, beside a computation whose threads have equal shares of the cores."""
    cores = np.divide(1.0, work.delay, out=np.ones_like(work.delay), where=work.delay > 0)
    return np.maximum(1.0, (np.floor(cores).clip(1.0) + 1.0) * work.delay)


def _per_cpu_s(work: Work) -> Floats:
    """(n,) seconds that a processor second of the exchange takes at least: it is one thread's."""
    return np.maximum(1.0, work.delay)
