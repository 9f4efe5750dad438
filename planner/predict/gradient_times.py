"""The time of a gradient is a curve over the batch size: lines through the sizes that were timed.

An accelerator that a few images do not fill, or a cache that many overflow, bends it. Beyond the
timed sizes the line of the two nearest holds, within two physical bounds: more images take no less
time, and no more time an image. There the line can be wrong, for an accelerator may take as long
for 16 as for 32 images, and then in proportion. The 95 % interval reaches the slower bound.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from planner.profile.file import DeviceProfile
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
    return GradientTimes([other for other in device.steps if _line(other) == _line(step) and is_complete(other)])


def _line(step: StepProfile) -> tuple[object, ...]:
    """What timings at two batch sizes must have in common to lie on one line."""
    setup = step.setup
    made_by = (setup.accelerator, setup.threads, setup.slowdown, setup.compute)
    return step.model, step.framework, setup.fingerprint, *made_by


def is_complete(step: StepProfile) -> bool:
    """Whether all was timed that a prediction rests on."""
    return all(samples.values for samples in (step.gradient_s, step.update_s, step.costs.service_s))
