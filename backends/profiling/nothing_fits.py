"""Where no batch fits into a device, the error says what would help there."""

from typing import Any, Callable

from backends.frameworks.base import Replica
from backends.frameworks.optimizer import OWN
from backends.profiling.alternatives import CANNOT
from backends.profiling.batch_curve import LEAST
from backends.profiling.smallest_change import SMALLER, in_bytes, kept_arrays, smallest_change
from backends.profiling.step_memory import STEPS, MemoryProbe
from profilers.records.steps import ModelSize

CHECKPOINTED = "profile it with --activation-checkpointing: a batch of %d fits then"


def require_room(size: ModelSize, optimizer: str, probe: MemoryProbe) -> None:
    """Raises ValueError where weights, gradients and the optimizer do not fit without any sample.

    That is told before the first step, for Linux ends a process that asks for more than there is.
    """
    kept = kept_arrays(optimizer)
    needed = probe.used_bytes + (0 if optimizer == OWN else kept * size.parameter_bytes)
    if needed > probe.available_bytes:
        change = smallest_change(size, kept, needed, probe.available_bytes) or SMALLER
        raise ValueError(
            "weights, gradients and optimizer need %s of its memory, and may use %s; %s"
            % (in_bytes(needed), in_bytes(probe.available_bytes), change)
        )


def with_remedy(
    error: MemoryError,
    replica: Replica,
    is_checkpointed: bool,
    step_at: Callable[[int], Callable[[], Any]],
    probe: MemoryProbe,
) -> ValueError:
    """The error of a model of which no batch fits, with what would help.

    is_checkpointed: whether it computes with activation checkpointing already.
    step_at: gives a function that makes a step at a size. probe: a new one.
    """
    helps = not is_checkpointed and _fits_checkpointed(replica, step_at(LEAST), probe)
    return ValueError("%s; %s" % (error, CHECKPOINTED % LEAST if helps else SMALLER))


def _fits_checkpointed(replica: Replica, step: Callable[[], Any], probe: MemoryProbe) -> bool:
    try:
        replica.checkpoint_activations()
        return probe.measure(LEAST, lambda: [step() for _ in range(STEPS)]) is not None
    except CANNOT:  # there are no blocks, or they cannot be computed again
        return False
