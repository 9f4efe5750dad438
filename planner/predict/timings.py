"""Timings: which one of a profile counts for each device, and which devices have none."""

from collections import Counter

from backends.models import is_user_model
from planner.errors import PlanError
from planner.predict.gradient_times import BatchSizeError, gradient_times, is_complete
from planner.profile.file import Profile
from profilers.records.steps import StepProfile
from profilers.stats import mean


def timed_steps(
    profile: Profile, model: str, framework: str | None, batch: int | None, any_batch: bool = False
) -> tuple[dict[str, StepProfile], dict[str, str]]:
    """Timings by device, and the reason by device that is left out.

    any_batch: whether devices may differ in it.
    The nearest to ``batch`` counts, and without a ``framework`` that in which a step is shortest.
    Raises PlanError where a batch size must be chosen, or devices were timed in several precisions.
    """
    steps: dict[str, StepProfile] = {}
    left_out: dict[str, str] = {}
    batches: set[int] = set()
    for name, device in profile.devices.items():
        timed = [step for step in device.steps if step.model == model and framework in (None, step.framework)]
        complete = [step for step in timed if is_complete(step)]
        if device.error is not None:
            left_out[name] = device.error
        elif device.facts is None:
            left_out[name] = "its facts were not read"
        elif not complete and model in device.failures:
            left_out[name] = f"{model}: {device.failures[model]}"
        elif not complete:
            left_out[name] = f"{model} was not timed completely on it{f' with {framework}' if framework else ''}"
        else:
            batches.update(step.planned_batch for step in complete)
            chosen = min(complete, key=lambda step: _preference(step, batch))
            try:
                gradient_times(device, chosen).check(batch or chosen.planned_batch)
                steps[name] = chosen
            except BatchSizeError as error:
                left_out[name] = f"{model} {error}"
    _leave_out_other_versions(steps, left_out)
    _require_one_precision(model, steps)
    if batch is None and len(batches) > 1 and not any_batch:
        raise PlanError(f"{model} was timed at several batch sizes; choose one with --batch-size")
    return steps, left_out


def _preference(step: StepProfile, batch: int | None) -> tuple[int, float]:
    """Distance to the batch size asked for, then seconds of a worker's step an image."""
    worker_s = sum(mean(samples.values) for samples in (step.gradient_s, step.copy_s) if samples.values)
    return abs(step.batch - (batch or step.batch)), worker_s / step.batch


def _leave_out_other_versions(steps: dict[str, StepProfile], left_out: dict[str, str]) -> None:
    """Keep the devices that timed the same model as most others."""
    versions = {  # a description is the same model in all frameworks, a user's own model is not
        name: (step.setup.fingerprint, step.size.parameters, step.framework if is_user_model(step.model) else "")
        for name, step in steps.items()
    }
    for version, _ in Counter(versions.values()).most_common()[1:]:
        for name in [name for name, other in versions.items() if other == version]:
            what = ", ".join(filter(None, (version[0], version[2])))
            left_out[name] = f"its {steps.pop(name).model} ({what}) is not the one most devices timed"


def _require_one_precision(model: str, steps: dict[str, StepProfile]) -> None:
    devices: dict[str, list[str]] = {}
    for name, step in steps.items():
        devices.setdefault(step.setup.compute.precision, []).append(name)
    if len(devices) > 1:
        timed = ", ".join(f"in {precision} on {' and '.join(names)}" for precision, names in sorted(devices.items()))
        raise PlanError(f"{model} was timed {timed}; profile all devices with one --precision")


def pick(profile: Profile, field: str, chosen: str | None, model: str | None = None) -> str:
    """The ``model`` or ``framework`` asked for, or the only one. PlanError names the known."""
    known = _known(profile, field, model)
    if chosen is None and len(known) == 1:
        return known[0]
    if chosen in known:
        return str(chosen)
    what = f"choose one with --{field}" if chosen is None else f"{chosen} is not in the profile"
    raise PlanError(f"{field}: {what}; profiled: {', '.join(known) or 'none, run `planner profile`'}")


def pick_framework(profile: Profile, chosen: str | None, model: str | None = None) -> str | None:
    """As ``pick``; None where there are several frameworks, so that each device has its own."""
    several = chosen is None and len(_known(profile, "framework", model)) > 1
    return None if several else pick(profile, "framework", chosen, model)


def _known(profile: Profile, field: str, model: str | None) -> list[str]:
    steps = [step for device in profile.devices.values() for step in device.steps]
    return sorted({str(getattr(step, field)) for step in steps if model in (None, step.model)})
