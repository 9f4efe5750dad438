"""Timings: the one of the profile that counts for each device, and its gradient by batch size.

A gradient's time is a curve over the batch size, made of pieces of lines through the sizes that
were timed: an accelerator that a few images do not fill, or a cache that many overflow, bends it.
Beyond the timed sizes the line of the two nearest holds, within two physical bounds: more images
take no less time, and no more time an image. There the line can be wrong, for an accelerator may
take as long for 16 as for 32 images, and then in proportion. The 95 % interval reaches the slower
bound.
"""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from backends.models import is_user_model
from planner.errors import PlanError
from planner.profile.file import DeviceProfile, Profile
from profilers.records.steps import StepProfile
from profilers.stats import Z95, mean, standard_error

#: Times the largest, and part of the smallest, profiled size that may be predicted: from there on
#: the interval is so wide that a ranking says nothing.
FARTHEST = 4


class BatchSizeError(ValueError):
    """The time at a batch size cannot be told from the profiled ones; the message says why."""


class GradientTime(NamedTuple):
    """Mean seconds of a gradient and their relative standard error."""

    seconds: float
    error: float


class _Point(NamedTuple):
    batch: int
    seconds: float
    error_s: float


class GradientTimes:
    """Gradient times of one model on one device by batch size, from one or more profiles."""

    def __init__(self, steps: Sequence[StepProfile]) -> None:
        known = {other.batch: other.gradient_s for step in reversed(steps) for other in step.other_batches}
        known.update((step.batch, step.gradient_s) for step in steps)
        means = [
            (batch, mean(samples.values), standard_error(samples.values)) for batch, samples in sorted(known.items())
        ]
        self._points = [_Point(batch, seconds, error * seconds) for batch, seconds, error in means]

    @property
    def sizes(self) -> tuple[int, int]:
        """The smallest and the largest profiled batch size."""
        return self._points[0].batch, self._points[-1].batch

    @property
    def reach(self) -> tuple[int, int]:
        """The smallest and the largest batch size whose time can be predicted."""
        smallest, largest = self.sizes
        return (-(-smallest // FARTHEST), FARTHEST * largest) if smallest < largest else self.sizes

    def check(self, batch: int) -> None:
        """Raises BatchSizeError where the time at a batch size cannot be predicted."""
        smallest, largest = self.sizes
        if smallest == largest != batch:
            raise BatchSizeError(f"was timed on it at batch size {largest} only")
        if not self.reach[0] <= batch <= self.reach[1]:
            raise BatchSizeError(f"was timed on it at batch sizes {smallest} to {largest}, too far from {batch}")

    def at(self, batch: int) -> GradientTime:
        """The time at a batch size. Raises BatchSizeError as ``check``."""
        self.check(batch)
        for point in self._points:
            if point.batch == batch:
                return GradientTime(point.seconds, point.error_s / point.seconds)
        segments = list(pairwise(self._points))
        low, high = next((each for each in segments if batch < each[1].batch), segments[-1])
        along = (batch - low.batch) / (high.batch - low.batch)
        seconds = (1 - along) * low.seconds + along * high.seconds
        error_s = math.hypot((1 - along) * low.error_s, along * high.error_s)
        if low.batch < batch < high.batch:
            return GradientTime(seconds, error_s / seconds)
        nearest = low if batch < low.batch else high
        least_s, most_s = sorted((nearest.seconds, nearest.seconds * batch / nearest.batch))
        seconds = min(max(seconds, least_s), most_s)
        return GradientTime(seconds, math.hypot(error_s / seconds, math.log(most_s / seconds) / Z95))


def image_s(step: StepProfile) -> float:
    """Seconds that one more image adds to a gradient, by the full and the half batch.

    Where noise leaves no slope between none and the whole time, as if nothing but images cost
    anything (as ``batching.Throughput`` has it).
    """
    full_s, half_s = mean(step.gradient_s.values), mean(step.half_batch_s.values) if step.half_batch_s.values else 0.0
    added_s = (full_s - half_s) / (step.batch - step.batch // 2)
    return added_s if 0.0 < added_s < full_s / step.batch else full_s / step.batch


def gradient_times(device: DeviceProfile, step: StepProfile) -> GradientTimes:
    """Gradient times by batch size, from all timings of what ``step`` timed on the device."""
    return GradientTimes([other for other in device.steps if _line(other) == _line(step) and _complete(other)])


def _line(step: StepProfile) -> tuple[object, ...]:
    """What timings at two batch sizes must have in common to lie on one line."""
    setup = step.setup
    made_by = (setup.accelerator, setup.threads, setup.slowdown, setup.precision, setup.micro_batch)
    return step.model, step.framework, setup.fingerprint, *made_by


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


def _complete(step: StepProfile) -> bool:
    return all(samples.values for samples in (step.gradient_s, step.update_s, step.costs.service_s))


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
        devices.setdefault(step.setup.precision, []).append(name)
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
