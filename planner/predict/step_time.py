"""Which of a profile's step timings a plan rests on, and why the other devices are left out."""

import math
from collections import Counter

from backends.models import is_user_model
from planner.errors import PlanError
from planner.predict.transfer_time import standard_error
from planner.profile.file import Profile
from profilers.records import StepProfile
from profilers.stats import mean


def gradient_at(step: StepProfile, batch: int) -> tuple[float, float]:
    """Mean gradient seconds at a batch size, and their relative standard error.

    Affine through the half and the full batch that were timed. The slope is held between no cost an image and
    no cost a step; where that holds it, the full batch alone counts, and its relative error.
    """
    full_s, error = mean(step.gradient_s.values), standard_error(step.gradient_s)
    if batch == step.batch:
        return full_s, error
    half_s, other_half = mean(step.half_batch_s.values), step.batch - step.batch // 2
    added_s, most_s = full_s - half_s, full_s * other_half / step.batch
    x = (batch - step.batch) / other_half
    gradient_s = full_s + x * min(max(added_s, 0.0), most_s)
    if 0.0 < added_s < most_s:
        error = math.hypot((1 + x) * full_s * error, x * half_s * standard_error(step.half_batch_s)) / gradient_s
    return gradient_s, error


def image_s(step: StepProfile) -> float:
    """Seconds that one image more adds to a gradient: by the half and the full batch that were timed, or as if nothing
    else cost anything where that cannot be (as batching.Throughput has it)."""
    full_s, half_s = mean(step.gradient_s.values), mean(step.half_batch_s.values) if step.half_batch_s.values else 0.0
    added_s = (full_s - half_s) / (step.batch - step.batch // 2)
    return added_s if 0.0 < added_s < full_s / step.batch else full_s / step.batch


def timed_steps(
    profile: Profile, model: str, framework: str | None, batch: int | None
) -> tuple[dict[str, StepProfile], dict[str, str]]:
    """Timings by device, and the reason by device that is left out.

    Of several batch sizes the nearest to ``batch`` counts, and where ``framework`` is None the framework in which a
    worker's step is shortest. Raises PlanError where a batch size must be chosen.
    """
    steps: dict[str, StepProfile] = {}
    left_out: dict[str, str] = {}
    batches: set[int] = set()
    for name, device in profile.devices.items():
        timed = [step for step in device.steps if step.model == model and framework in (None, step.framework)]
        complete = [step for step in timed if _complete(step)]
        if device.error is not None:
            left_out[name] = device.error
        elif device.facts is None:
            left_out[name] = "its facts were not read"
        elif not complete and model in device.failures:
            left_out[name] = f"{model}: {device.failures[model]}"
        elif not complete:
            left_out[name] = f"{model} was not timed completely on it{f' with {framework}' if framework else ''}"
        else:
            batches.update(step.batch for step in complete)
            chosen = min(complete, key=lambda step: _preference(step, batch))
            if batch in (None, chosen.batch) or chosen.half_batch_s.values:
                steps[name] = chosen
            else:
                left_out[name] = f"{model} was timed on it at batch size {chosen.batch} only"
    _leave_out_other_versions(steps, left_out)
    if batch is None and len(batches) > 1:
        raise PlanError(f"{model} was timed at several batch sizes; choose one with --batch-size")
    return steps, left_out


def _complete(step: StepProfile) -> bool:
    return all(samples.values for samples in (step.gradient_s, step.update_s, step.service_s))


def _preference(step: StepProfile, batch: int | None) -> tuple[int, float]:
    """The least comes first: how far the batch size is from the one asked for, then a worker's seconds an image."""
    worker_s = sum(mean(samples.values) for samples in (step.gradient_s, step.copy_s) if samples.values)
    return abs(step.batch - (batch or step.batch)), worker_s / step.batch


def _leave_out_other_versions(steps: dict[str, StepProfile], left_out: dict[str, str]) -> None:
    """Keep the devices that timed the same model as most others."""
    kinds = Counter(map(_kind, steps.values())).most_common(1)
    for name, step in list(steps.items()):
        if _kind(step) != kinds[0][0]:
            what = ", ".join(filter(None, (step.fingerprint, _own_framework(step))))
            left_out[name] = f"its {step.model} ({what}) is not the one most devices timed"
            del steps[name]


def _kind(step: StepProfile) -> tuple[str, int, str]:
    return step.fingerprint, step.parameters, _own_framework(step)


def _own_framework(step: StepProfile) -> str:
    """The framework that a user's own model is written in; "" for a description, which is the same model in all."""
    return step.framework if is_user_model(step.model) else ""


def pick(profile: Profile, field: str, chosen: str | None, model: str | None = None) -> str:
    """The ``model`` or ``framework`` asked for, or the only one. Raises PlanError naming the known."""
    known = _known(profile, field, model)
    if chosen is None and len(known) == 1:
        return known[0]
    if chosen in known:
        return str(chosen)
    what = f"choose one with --{field}" if chosen is None else f"{chosen} is not in the profile"
    raise PlanError(f"{field}: {what}; profiled: {', '.join(known) or 'none, run `planner profile`'}")


def pick_framework(profile: Profile, chosen: str | None, model: str | None = None) -> str | None:
    """The framework asked for, or the only one; None where there are several, so that each device has its own.

    Raises PlanError naming the known.
    """
    if chosen is None and len(_known(profile, "framework", model)) > 1:
        return None
    return pick(profile, "framework", chosen, model)


def _known(profile: Profile, field: str, model: str | None) -> list[str]:
    steps = [step for device in profile.devices.values() for step in device.steps]
    return sorted({str(getattr(step, field)) for step in steps if model in (None, step.model)})
