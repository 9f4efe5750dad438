"""Seconds of an update by optimizer, as profiled; of an older profile, scaled from those of SGD."""

from collections.abc import Callable, Sequence

from backends.frameworks.base import ADAM, ADAMW, DELAYED_NESTEROV, NESTEROV, OWN, SGD
from backends.strategies.engine import TORCH, Engine
from profilers.records.readings import Samples
from profilers.records.steps import StepProfile, UpdateCost
from profilers.stats import mean

#: Update times in those of SGD, where they were not profiled: by the arrays of the model's size
#: that are read or written, gradient, moments and weights. LARS is taken for SGD, as it always was.
SCALES = {ADAM: 7 / 5, ADAMW: 7 / 5}
#: Optimizers whose update is timed as that of another.
TIMED_AS = {ADAMW: ADAM, NESTEROV: SGD, DELAYED_NESTEROV: SGD}
#: What stands for SGD and a job's own optimizer where only one of them was timed in each place.
UNTOLD = f"those of the job's own optimizer on a device alone, and those of {SGD} elsewhere"


def update_s(optimizer: str, step: StepProfile) -> Samples:
    """Of a device that trains alone, or a rank of torch.distributed."""
    return _of(optimizer, step, step.update_s, lambda cost: cost.update_s)


def service_s(optimizer: str, step: StepProfile) -> Samples:
    """Of a parameter server, or a peer."""
    return _of(optimizer, step, step.service_s, lambda cost: cost.service_s)


def clipping(step: StepProfile, engine: Engine) -> StepProfile:
    """The timing of a device that clips gradients.

    Workers and peers clip theirs before they send it; a device alone, and a rank of
    torch.distributed, before the update.
    """
    clip_s = mean(step.clip_s.values) if step.clip_s.values else 0.0
    others = {name: cost._replace(update_s=_longer(cost.update_s, clip_s)) for name, cost in step.optimizers.items()}
    copy_s = step.copy_s if engine.name == TORCH else _longer(step.copy_s, clip_s)
    return step._replace(update_s=_longer(step.update_s, clip_s), copy_s=copy_s, optimizers=others)


def clipping_notes(steps: Sequence[StepProfile]) -> list[str]:
    """A note for the operator where the profile does not tell what clipping costs."""
    if all(step.clip_s.values for step in steps):
        return []
    return ["the profile does not tell what --clip-norm costs, which is left out; profile again with --fresh"]


def _longer(samples: Samples, by_s: float) -> Samples:
    return samples._replace(values=tuple(value + by_s for value in samples.values))


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
