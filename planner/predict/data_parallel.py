"""A step of data-parallel training overlaps the backward pass with the all-reduces of its buckets.

DistributedDataParallel puts gradients into buckets in the order in which the backward pass makes
them, from the last variable to the first. A bucket is reduced once all members have it and the one
before is done, while the backward pass goes on. So the slowest member sets the pace, and what is
left of the exchange after the backward pass is what a step takes longer.

Local updates (local SGD, DiLoCo) exchange all weights between two steps, without any overlap.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from planner.arrays import Floats
from planner.predict.collectives import Network, Transport, all_reduce_s, of_message

#: Buckets of DistributedDataParallel: one is closed by the variable that fills it.
FIRST_BUCKET_BYTES, BUCKET_BYTES = 1 << 20, 25 << 20
#: Part of a gradient that is the forward pass: the backward pass multiplies twice by each weight,
#: once for the gradient of the weights and once for that of the layer's input.
FORWARD = 1 / 3


class Bucket(NamedTuple):
    """Bytes that are reduced at once, ready after this part of the backward pass."""

    message_bytes: float
    passed: float


class Compute(NamedTuple):
    """Seconds of n members in a step, (n,) each.

    gradient_s, update_s: of the forward and backward pass, and of the optimizer.
    stolen_s_per_byte: that a byte, sent or received, takes from a computation on the processor.
    add_s_per_byte: to add what came, and to encode and decode it.
    """

    gradient_s: Floats
    update_s: Floats
    stolen_s_per_byte: Floats
    add_s_per_byte: Floats


class SynchronousStep(NamedTuple):
    """A synchronous step of n members.

    step_s: seconds from one step to the next; exposed_s: those in which no member computes.
    busy_s: (n,) that each member works.
    sent_bytes: (n, n) [from, to].
    """

    step_s: float
    exposed_s: float
    busy_s: Floats
    sent_bytes: Floats


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


def synchronous(work: Compute, made: Sequence[Bucket], transport: Transport, network: Network) -> SynchronousStep:
    """A step of DistributedDataParallel; that of a member alone sends nothing."""
    n = work.gradient_s.size
    sent_bytes, handled_s = np.zeros((n, n)), np.zeros(n)
    forward_s = work.update_s + FORWARD * work.gradient_s  # a step begins with the update of the one before
    backward_s, delay_s, end_s = (1 - FORWARD) * work.gradient_s, np.zeros(n), 0.0
    for bucket in made:
        begin_s = max(end_s, float((forward_s + bucket.passed * backward_s + delay_s).max()))
        carried = of_message(transport, n, bucket.message_bytes).shares * bucket.message_bytes
        handling_s = _handling_s(work, carried)
        during_s = max(all_reduce_s(transport, network, bucket.message_bytes), float(handling_s.max()))
        end_s = begin_s + during_s
        beside_s = (forward_s + backward_s + delay_s - begin_s).clip(0.0, during_s)
        delay_s = delay_s + handling_s * np.divide(beside_s, during_s, out=np.zeros(n), where=during_s > 0)
        sent_bytes += carried
        handled_s += handling_s
    computed_s = forward_s + backward_s + delay_s
    step_s = max(end_s, float(computed_s.max()))
    own_s = forward_s + backward_s + handled_s
    return SynchronousStep(step_s, step_s - float(computed_s.max()), np.minimum(own_s, step_s), sent_bytes)


def exchange_s(transport: Transport, network: Network, message_bytes: float) -> float:
    """Seconds of an exchange of all weights between two steps of local updates."""
    return all_reduce_s(transport, network, message_bytes) + transport.copy_s_per_byte * message_bytes


def _handling_s(work: Compute, carried: Floats) -> Floats:
    """(n,) processor seconds of one all-reduce. carried: (n, n) bytes."""
    sent, received = carried.sum(axis=1), carried.sum(axis=0)
    return (sent + received) * work.stolen_s_per_byte + received * work.add_s_per_byte
