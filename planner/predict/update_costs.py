"""Seconds of an update by optimizer, as profiled; of an older profile, scaled from those of SGD."""

from collections.abc import Callable, Sequence

from backends.frameworks.base import ADAM, ADAMW, OWN, SGD
from profilers.records import Samples, StepProfile, UpdateCost

#: Update times in those of SGD, where they were not profiled: by the arrays of the model's size
#: that are read or written, gradient, moments and weights. LARS is taken for SGD, as it always was.
SCALES = {ADAM: 7 / 5, ADAMW: 7 / 5}
#: Optimizers whose update is timed as that of another.
TIMED_AS = {ADAMW: ADAM}
#: What stands for SGD and a job's own optimizer where only one of them was timed in each place.
UNTOLD = f"those of the job's own optimizer on a device alone, and those of {SGD} elsewhere"


def update_s(optimizer: str, step: StepProfile) -> Samples:
    """Of a device that trains alone, or a rank of torch.distributed."""
    return _of(optimizer, step, step.update_s, lambda cost: cost.update_s)


def service_s(optimizer: str, step: StepProfile) -> Samples:
    """Of a parameter server, or a peer."""
    return _of(optimizer, step, step.service_s, lambda cost: cost.service_s)


def notes(optimizer: str, steps: Sequence[StepProfile]) -> list[str]:
    """A note for the operator where the profile lacks an optimizer."""
    if all(_is_timed(optimizer, step) for step in steps):
        return []
    taken = f"{SCALES[optimizer]:g} times those of {SGD}" if optimizer in SCALES else UNTOLD
    return [
        f"the profile does not tell what updates with {optimizer} cost; they are taken for {taken}; "
        "profile again with --fresh"
    ]


def _is_timed(optimizer: str, step: StepProfile) -> bool:
    if optimizer in (SGD, OWN):
        return not step.own_optimizer or SGD in step.optimizers
    return optimizer not in SCALES or TIMED_AS.get(optimizer, optimizer) in step.optimizers


def _of(optimizer: str, step: StepProfile, plain: Samples, part: Callable[[UpdateCost], Samples]) -> Samples:
    known = step.optimizers.get(TIMED_AS.get(optimizer, optimizer))
    if known is not None:
        return part(known)
    if optimizer not in SCALES:
        return plain
    return plain._replace(values=tuple(SCALES[optimizer] * value for value in plain.values))
