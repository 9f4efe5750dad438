"""torch.distributed costs what is sent in its buckets, over links that do not encrypt it."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from backends.strategies.engine import Engine
from planner.arrays import Bools, Floats
from planner.predict import link_costs
from planner.predict.data_parallel import Bucket, ByteCosts, buckets, filled, last_ready, ready_evenly
from planner.predict.message_time import Processor, processor_s, rate_bytes_per_s
from planner.profile.file import DeviceProfile, Profile
from profilers.mixed_precision import FP16
from profilers.records.links import LinkProfile
from profilers.records.steps import StepProfile

#: Bytes of an element as sent, by hook; those of powersgd depend on the variable.
ELEMENT_BYTES = {"none": 4.0, "fp16": 2.0, "bf16": 2.0}
#: gloo cuts what a member sends in a hop into at least so many messages.
GLOO_MESSAGES = 2
#: Bytes of a message that costs processors what any message does.
SMALL_BYTES = 1024
#: All-reduces of a bucket with powersgd: what is too small to compress, and both factors.
POWERSGD_MESSAGES = 3
#: powersgd compresses a matrix where its factors have less than this share of its elements.
POWERSGD_SHARE = 1 / 2


class TorchCosts(NamedTuple):
    """What a step by torch.distributed costs besides ``DeviceCosts`` and ``PairCosts``.

    buckets: those of the model, as sent; ready at each of N devices.
    bytes_per_s: (N, N) [from, to] of one unencrypted connection; 0 where it was not measured.
    send_cpu_s, receive_cpu_s: (N, N) [from, to] processor seconds of a small message at either end.
    alone, beside: of a byte, (N, N) as in ``data_parallel.Work``, but without adding it.
    nccl: (N,), devices that NCCL can reach.
    own_cpu_s: (N,) processor seconds that DistributedDataParallel adds to a gradient, its exchange
        aside; on an emulated device as if it computed so long.
    """

    engine: Engine
    buckets: tuple[Bucket, ...]
    bytes_per_s: Floats
    send_cpu_s: Floats
    receive_cpu_s: Floats
    alone: ByteCosts
    beside: ByteCosts
    nccl: Bools
    own_cpu_s: Floats

    def uses_nccl(self, ranked: Sequence[int]) -> bool:
        """Whether these members exchange through NCCL."""
        return self.engine.backend != "gloo" and bool(self.nccl[list(ranked)].all())


def of_profile(
    profile: Profile, steps: Mapping[str, StepProfile], caps: Mapping[str, float], chosen: Engine
) -> TorchCosts:
    """Costs on the devices in ``steps``, in that order. caps: bytes/s that a network is held to."""
    links, names = link_costs.known(profile), list(steps)
    rates, send_cpu_s, receive_cpu_s = np.zeros((3, len(names), len(names)))
    alone, beside = (ByteCosts(*np.zeros((2, len(names), len(names)))) for _ in range(2))
    all_bytes = next(iter(steps.values())).gradient_bytes
    for i, k in np.ndindex(rates.shape):
        ends = names[i], names[k]
        if ends in links:
            rates[i, k] = min(rate_bytes_per_s(links[ends]), math.inf if i == k else min(caps[name] for name in ends))
            send_cpu_s[i, k], receive_cpu_s[i, k] = processor_s(links[ends], SMALL_BYTES)
            for costs, (send_s, receive_s) in zip((alone, beside), _byte_costs(links[ends], all_bytes), strict=True):
                costs.send_s[i, k], costs.receive_s[i, k] = send_s, receive_s
    return TorchCosts(
        engine=chosen,
        buckets=tuple(_buckets(list(steps.values()), chosen)),
        bytes_per_s=rates,
        send_cpu_s=send_cpu_s,
        receive_cpu_s=receive_cpu_s,
        alone=alone,
        beside=beside,
        nccl=np.array([_has_nccl(step) for step in steps.values()]),
        own_cpu_s=np.array([(step.group_cpu_s or 0.0) * step.slowdown for step in steps.values()]),
    )


def _byte_costs(link: LinkProfile, message_bytes: int) -> tuple[Processor, Processor]:
    """What an unencrypted byte of a message costs processors at either end, alone and beside.

    A computation was timed beside encrypted messages: what encrypting costs is taken off. Where
    plain messages were not timed, encrypted ones are taken as they are.
    """
    encrypted = Processor(*(cost_s / message_bytes for cost_s in processor_s(link, message_bytes)))
    plain = (link.plain_send_cpu_s, link.plain_receive_cpu_s)
    stolen = (link.send_stolen_cpu_s, link.receive_stolen_cpu_s)
    alone = Processor(*(its if own is None else own for own, its in zip(plain, encrypted, strict=True)))
    lost = [(cost_s or 0.0) - its + own for cost_s, its, own in zip(stolen, encrypted, alone, strict=True)]
    return alone, Processor(*np.maximum(lost, alone).tolist())


def unable(profile: Profile, steps: Mapping[str, StepProfile], chosen: Engine, allow_plaintext: bool) -> dict[str, str]:
    """The reason by device that cannot take part in a run by torch.distributed.

    allow_plaintext: whether gradients may cross a network as they are.
    """
    reasons = {name: _unable(profile.devices[name], step, chosen, allow_plaintext) for name, step in steps.items()}
    return {name: reason for name, reason in reasons.items() if reason}


def notes(chosen: Engine) -> list[str]:
    """What the operator must know of these costs."""
    if chosen.hook != "powersgd":
        return []
    return [
        f"hook=powersgd: predicted as after its first {chosen.start:,} rounds, which send all; variables count as "
        "square matrices, and the time to factor them was not profiled"
    ]


def _unable(device: DeviceProfile, step: StepProfile, chosen: Engine, allow_plaintext: bool) -> str | None:
    if step.framework != "torch":
        return f"torch.distributed trains with torch, and it computes with {step.framework}"
    if step.precision == FP16:
        return "fp16 scales its loss, which torch.distributed cannot do here; profile it with --precision bf16 or fp32"
    if step.collectives == ():
        return f"its torch {step.framework_version} was built without torch.distributed"
    if chosen.backend == "nccl" and not _has_nccl(step):
        return "it has no GPU with NCCL; leave backend=nccl out"
    if device.device.get("host") is not None and not allow_plaintext:
        return "torch.distributed does not encrypt what crosses its network; allow it with --allow-plaintext"
    return None


def _has_nccl(step: StepProfile) -> bool:
    return step.accelerator == "cuda" and "nccl" in (step.collectives or ())


def _buckets(steps: Sequence[StepProfile], chosen: Engine) -> list[Bucket]:
    layers = steps[0].layers
    measured = [step.ready for step in steps if len(step.ready) == len(layers)]
    others = np.mean(measured, axis=0) if measured else ready_evenly(len(layers))
    ready = np.array([step.ready if len(step.ready) == len(layers) else others for step in steps])
    if chosen.hook == "powersgd":  # over gloo, each bucket holds up the backward pass
        return _factored(layers, ready if _has_nccl(steps[0]) else np.ones_like(ready), chosen.rank)
    return buckets(layers, ELEMENT_BYTES[chosen.hook], ready)


def _factored(layers: Sequence[int], ready: Floats, rank: int) -> list[Bucket]:
    """The buckets of powersgd: a variable of m x m is sent as two factors of m x rank."""
    return [
        Bucket(4.0 * sum(_elements(layers[i], rank) for i in inside), last_ready(ready, inside), POWERSGD_MESSAGES)
        for inside in filled(layers, ready)
    ]


def _elements(elements: int, rank: int) -> float:
    factors = 2 * rank * math.sqrt(elements)
    return factors if factors < POWERSGD_SHARE * elements else float(elements)
