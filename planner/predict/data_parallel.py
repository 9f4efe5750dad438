"""A step of data-parallel training overlaps the backward pass with the all-reduces of its buckets.

DistributedDataParallel puts gradients into buckets in the order in which the backward pass makes
them, as a rule from the last variable to the first. A bucket is reduced once all members have it
and the one before is done, while the backward pass goes on. So the slowest member of each step sets
the pace (see ``straggler``), and what is left of the exchange after the backward pass is what a
step takes longer. Where processors compute, the thread that exchanges has the share of one thread
among those of the backward pass, and this loses what it takes.

Local updates (local SGD, DiLoCo) exchange all weights between two steps, without any overlap.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from planner.arrays import Floats
from planner.predict.collectives import Collective, Duration, Network, Transport, all_reduce_s, duration, of_message

#: Buckets of DistributedDataParallel: one is closed by the variable that fills it.
FIRST_BUCKET_BYTES, BUCKET_BYTES = 1 << 20, 25 << 20
#: Part of a gradient that is the forward pass, where it was not measured: the backward pass
#: multiplies twice by each weight, for the gradients of the weights and of the layer's input.
FORWARD = 1 / 3


class Bucket(NamedTuple):
    """What is reduced at once.

    message_bytes: of all its messages; messages: that follow one another, of equal size.
    ready: share of a gradient's seconds after which its variables have theirs; one for all members,
        or (n,).
    """

    message_bytes: float
    ready: float | Floats
    messages: int = 1


class Work(NamedTuple):
    """What n members do in a step.

    gradient_s, update_s: (n,) seconds of the forward and backward pass, and of the optimizer.
    alone, beside: processor seconds of a byte where nothing is computed, and those that a
        computation lacks beside it.
    hop_cpu_s: (n,) processor seconds of a hop at a member, besides those of its bytes.
    delay: (n,) seconds that a computation there loses by one of these; 0 on an accelerator.
    pace: of the steps, (n,) or the same for all: by so much longer than its mean a gradient of a
        member counts, for one of the members is slower than usual in most steps.
    """

    gradient_s: Floats
    update_s: Floats
    alone: "ByteCosts"
    beside: "ByteCosts"
    hop_cpu_s: Floats
    delay: Floats
    pace: float | Floats = 1.0


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

    empty_cpu_s: of an empty message. alone_s_per_byte, beside_s_per_byte: as in ``Work``.
    """

    shares: Floats
    takes: Duration
    empty_cpu_s: Floats
    alone_s_per_byte: Floats
    beside_s_per_byte: Floats


def buckets(layers: Sequence[int], bytes_per_element: float = 4.0, ready: Floats | None = None) -> list[Bucket]:
    """The buckets of a model.

    layers: elements of each trained variable, in the order of the forward pass.
    bytes_per_element: as sent; buckets are cut by the bytes of float32.
    ready: as for ``filled``.
    """
    shares = ready_evenly(len(layers)) if ready is None else ready
    return [
        Bucket(sum(layers[i] for i in inside) * bytes_per_element, last_ready(shares, inside))
        for inside in filled(layers, ready)
    ]


def filled(layers: Sequence[int], ready: Floats | None = None) -> list[list[int]]:
    """The variables in each bucket, in the order in which the backward pass makes their gradients.

    ready: (variables,) or (members, variables) share of a gradient's seconds after which each
        variable has its own; None where unknown.
    """
    shares = ready_evenly(len(layers)) if ready is None else ready
    made: list[list[int]] = [[]]
    held, limit = 0, FIRST_BUCKET_BYTES
    first_to_last = shares.reshape(-1, len(layers)).mean(axis=0)
    for variable in np.lexsort((-np.arange(len(layers)), first_to_last)).tolist():
        if held >= limit:
            made.append([])
            held, limit = 0, BUCKET_BYTES
        made[-1].append(variable)
        held += 4 * layers[variable]
    return made


def ready_evenly(count: int) -> Floats:
    """``ready`` of so many variables whose layers take equally long."""
    return FORWARD + (1 - FORWARD) * np.arange(count, 0, -1) / count


def last_ready(ready: Floats, inside: Sequence[int]) -> float | Floats:
    """When all of these variables have their gradients."""
    last: Floats = ready[..., inside].max(axis=-1)
    return float(last) if last.ndim == 0 else last


def synchronous(work: Work, made: Sequence[Bucket], transport: Transport, network: Network) -> SynchronousStep:
    """A step of DistributedDataParallel; that of a member alone sends nothing."""
    n = work.gradient_s.size
    reductions: dict[bool, _Reduction] = {}
    sent_bytes, handled_s, delay_s, end_s = np.zeros((n, n)), np.zeros(n), np.zeros(n), 0.0
    # A step begins with what follows the exchange of the one before: the rest of its gradient, such
    # as scaling all of it, and the update.
    last = np.max([np.broadcast_to(bucket.ready, n) for bucket in made], axis=0)
    paced_s = work.pace * work.gradient_s
    before_s = work.update_s + (1 - last) * paced_s
    all_s = work.update_s + paced_s
    for bucket in made:
        message_bytes = bucket.message_bytes / bucket.messages
        small = message_bytes < transport.tree_below_bytes
        if small not in reductions:
            reductions[small] = _reduction(work, transport, network, of_message(transport, n, message_bytes))
        shares, takes, empty_cpu_s, *s_per_byte = reductions[small]
        alone_s, beside_s = (empty_cpu_s * bucket.messages + each * bucket.message_bytes for each in s_per_byte)
        link_s = takes.hops_s * bucket.messages + takes.s_per_byte * bucket.message_bytes
        begin_s = max(end_s, float((before_s + bucket.ready * paced_s + delay_s).max()))
        left_s = (all_s + delay_s - begin_s).clip(0.0)
        during_s, lost_s, spent_s = _beside_computing(work, left_s, link_s, alone_s, beside_s)
        end_s, delay_s = begin_s + during_s, delay_s + lost_s
        sent_bytes += shares * bucket.message_bytes
        handled_s += spent_s * work.delay
    computed_s = all_s + delay_s
    busy_s = work.update_s + work.gradient_s + handled_s
    step_s = max(end_s, float(computed_s.max()))
    busy_s = np.minimum(busy_s, step_s)
    return SynchronousStep(step_s, step_s - float(computed_s.max()), busy_s, sent_bytes)


def exchange_s(transport: Transport, network: Network, message_bytes: float) -> float:
    """Seconds of an exchange of all weights between two steps of local updates."""
    return all_reduce_s(transport, network, message_bytes) + transport.copy_s_per_byte * message_bytes


def _reduction(work: Work, transport: Transport, network: Network, made: Collective) -> _Reduction:
    """Of one kind of message. A hop begins when the processors are done with the one before."""
    shares = made.shares
    hops_s, s_per_byte = duration(transport, network, made)
    hops_s += made.hops * float((work.hop_cpu_s * _per_cpu_s(work)).max())
    takes = Duration(hops_s, s_per_byte)
    return _Reduction(shares, takes, made.hops * work.hop_cpu_s, work.alone.of(shares), work.beside.of(shares))


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
