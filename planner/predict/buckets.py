"""Buckets are what DistributedDataParallel reduces at once.

Gradients are put into them in the order in which the backward pass makes them, as a rule from the
last variable to the first. One is closed by the variable that fills it.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from backends.strategies.engine import Engine
from planner.arrays import Bools, Floats
from planner.predict.shares import ShardedModel
from profilers.records.steps import StepProfile

#: Buckets of DistributedDataParallel: one is closed by the variable that fills it.
FIRST_BUCKET_BYTES, BUCKET_BYTES = 1 << 20, 25 << 20
#: Part of a gradient that is the forward pass, where it was not measured: the backward pass
#: multiplies twice by each weight, for the gradients of the weights and of the layer's input.
FORWARD = 1 / 3


#: Bytes of an element as sent, by hook; those of powersgd depend on the variable.
ELEMENT_BYTES = {"none": 4.0, "fp16": 2.0, "bf16": 2.0}
#: All-reduces of a bucket with powersgd: what is too small to compress, and both factors.
POWERSGD_MESSAGES = 3
#: powersgd compresses a matrix where its factors have less than this share of its elements.
POWERSGD_SHARE = 1 / 2


class Bucket(NamedTuple):
    """What is reduced at once.

    message_bytes: of all its messages; messages: that follow one another, of equal size.
    ready: share of a gradient's seconds after which its variables have theirs; one for all members,
        or (n,).
    """

    message_bytes: float
    ready: float | Floats
    messages: int = 1


class TorchBuckets(NamedTuple):
    """What a step by torch.distributed has besides that of other engines.

    buckets: those of the model, as sent; ready at each of N devices.
    nccl: (N,), devices that NCCL can reach.
    own_cpu_s: (N,) processor seconds that DistributedDataParallel adds to a gradient, its exchange
        aside.
    model: as it is divided among the members of a sharded run.
    """

    buckets: tuple[Bucket, ...]
    nccl: Bools
    own_cpu_s: Floats
    model: ShardedModel


def of_steps(steps: Sequence[StepProfile], engine: Engine) -> TorchBuckets:
    """Those of N devices with these timings."""
    return TorchBuckets(
        buckets=tuple(_buckets(steps, engine)),
        nccl=np.array([has_nccl(step) for step in steps]),
        own_cpu_s=np.array([(step.costs.group_cpu_s or 0.0) * step.setup.slowdown for step in steps]),
        model=ShardedModel.of_step(steps[0]),
    )


def has_nccl(step: StepProfile) -> bool:
    """Whether a device has NCCL and a GPU."""
    return step.setup.accelerator == "cuda" and "nccl" in (step.costs.collectives or ())


def _buckets(steps: Sequence[StepProfile], engine: Engine) -> list[Bucket]:
    layers = steps[0].size.layers
    measured = [step.costs.ready for step in steps if len(step.costs.ready) == len(layers)]
    others = np.mean(measured, axis=0) if measured else ready_evenly(len(layers))
    ready = np.array([step.costs.ready if len(step.costs.ready) == len(layers) else others for step in steps])
    if engine.hook == "powersgd":  # over gloo, each bucket holds up the backward pass
        return _factored(layers, ready if has_nccl(steps[0]) else np.ones_like(ready), engine.rank)
    return buckets(layers, ELEMENT_BYTES[engine.hook], ready)


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


def _factored(layers: Sequence[int], ready: Floats, rank: int) -> list[Bucket]:
    """The buckets of powersgd: a variable of m x m is sent as two factors of m x rank."""
    return [
        Bucket(4.0 * sum(_elements(layers[i], rank) for i in inside), last_ready(ready, inside), POWERSGD_MESSAGES)
        for inside in filled(layers, ready)
    ]


def _elements(elements: int, rank: int) -> float:
    factors = 2 * rank * math.sqrt(elements)
    return factors if factors < POWERSGD_SHARE * elements else float(elements)
