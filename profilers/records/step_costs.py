"""A run takes time beside the gradients of its steps: for updates, messages and compressors."""

from typing import Dict, NamedTuple, Optional, Tuple

from profilers.records.readings import Samples


class CodecCost(NamedTuple):
    """Seconds that a compressor takes to encode, and to decode and add, what one message holds."""

    send_s: Samples
    add_s: Samples


class UpdateCost(NamedTuple):
    """Seconds of an optimizer's update: of a device that trains alone, and of a server."""

    update_s: Samples
    service_s: Samples


#: Bytes of an order, or of the report of a step: no more than these.
ORDER_BYTES = 1 << 10


class MessageCost(NamedTuple):
    """An encrypted message of a device to itself, after a gradient.

    send_cpu_s, receive_cpu_s: processor seconds at both ends.
    seconds: until it is acknowledged.
    """

    message_bytes: int
    send_cpu_s: float
    receive_cpu_s: float
    seconds: float = 0.0


class StepCosts(NamedTuple):
    """What a run takes beside its steps, and what is added to a step in some runs.

    service_s: processor time of one update on a device that hosts the parameter server, or in a
        peer, by SGD or by the job's own optimizer.
    compressors: costs of the compressors, by kind.
    clip_s: seconds to clip a gradient by its norm.
    optimizers: costs of updates by other optimizers, by name; AdamW's are Adam's.
    messages: of the device to itself, by size.
    build_s: until the model is built.
    first_step_s: seconds that the first step takes longer than the second one.
    evaluation_s: seconds in which a sample of the test set is read and evaluated; None for an empty
        one.
    collectives: backends of torch.distributed there, and whether it can shard a model.
    ready: share of a gradient's time after which each variable has its own; empty where the
        framework does not tell.
    group_cpu_s: processor seconds that a process group of its framework adds to a gradient, its
        exchange aside; None where that is unknown or nothing.
    """

    service_s: Samples
    compressors: Dict[str, CodecCost]
    clip_s: Samples
    optimizers: Dict[str, UpdateCost] = {}
    messages: Tuple[MessageCost, ...] = ()
    build_s: float = 0.0
    first_step_s: float = 0.0
    evaluation_s: Optional[float] = None
    collectives: Optional[Tuple[str, ...]] = None
    ready: Tuple[float, ...] = ()
    group_cpu_s: Optional[float] = None
