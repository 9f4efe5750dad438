"""Seconds of an update by optimizer, and of clipping, as profiled."""

from collections.abc import Callable

from backends.frameworks.base import ADAM, ADAMW, DELAYED_NESTEROV, NESTEROV, SGD
from backends.strategies.engine import TORCH, Engine
from profilers.records.readings import Samples
from profilers.records.steps import StepProfile, UpdateCost
from profilers.stats import mean

#: Optimizers whose update is timed as that of another.
TIMED_AS = {ADAMW: ADAM, NESTEROV: SGD, DELAYED_NESTEROV: SGD}


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
    clip_s = mean(step.clip_s.values)
    others = {name: cost._replace(update_s=_longer(cost.update_s, clip_s)) for name, cost in step.optimizers.items()}
    copy_s = step.copy_s if engine.name == TORCH else _longer(step.copy_s, clip_s)
    return step._replace(update_s=_longer(step.update_s, clip_s), copy_s=copy_s, optimizers=others)


def _longer(samples: Samples, by_s: float) -> Samples:
    return samples._replace(values=tuple(value + by_s for value in samples.values))


def _of(optimizer: str, step: StepProfile, plain: Samples, part: Callable[[UpdateCost], Samples]) -> Samples:
    known = step.optimizers.get(TIMED_AS.get(optimizer, optimizer))
    return plain if known is None else part(known)
