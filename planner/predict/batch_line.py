"""A gradient's time is a line in the batch size, through the sizes that were profiled on a device.

A profiled size has its measured mean. Between two profiled sizes the line through them holds, and
beyond them that of the two nearest, held between two physical bounds: more images take no less
time, and no more time an image (as far as caches and memory allow).

The standard error of such a time has two parts. One is that of the line, whose slope and intercept
err as the two means do: it grows with the distance. The other is what a line cannot know beyond the
profiled sizes, where its fixed part may be that of a device that is not yet busy and grows with the
batch (an accelerator takes as long for 16 as for 32 images, and then in proportion), or shrinks
below. The 95 % interval therefore reaches the bound at which the whole time scales with the batch,
or, for smaller batches, at which it stays what it is.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from planner.predict.transfer_time import standard_error
from profilers.records import Samples, StepProfile
from profilers.stats import Z95, mean

#: Times the largest, and part of the smallest, profiled size that may be predicted. There the
#: interval of a device whose time hardly changes with the batch reaches this factor, so that a
#: ranking says nothing any more, while a profile takes minutes.
FARTHEST = 4


class BatchSizeError(ValueError):
    """The time at a batch size cannot be told from the profiled ones; the message says why."""


class GradientTime(NamedTuple):
    """Mean seconds of a gradient and their relative standard error."""

    seconds: float
    error: float


class _Point(NamedTuple):
    """A profiled batch size: the mean seconds of its gradient, and their standard error."""

    batch: int
    seconds: float
    error_s: float


class BatchLine:
    """Gradient times of one model on one device by batch size, from one or more profiles."""

    def __init__(self, steps: Sequence[StepProfile]) -> None:
        points: dict[int, _Point] = {}
        for step in steps:
            half = step.batch // 2
            if half and half not in points and step.half_batch_s.values:
                points[half] = _point(half, step.half_batch_s)
        for step in steps:
            points[step.batch] = _point(step.batch, step.gradient_s)
        self._points = [points[batch] for batch in sorted(points)]

    @property
    def sizes(self) -> tuple[int, int]:
        """The smallest and the largest profiled batch size."""
        return self._points[0].batch, self._points[-1].batch

    def check(self, batch: int) -> None:
        """Raises BatchSizeError where the time at a batch size cannot be predicted."""
        smallest, largest = self.sizes
        if smallest == largest != batch:
            raise BatchSizeError(f"was timed on it at batch size {largest} only")
        if batch > FARTHEST * largest or FARTHEST * batch < smallest:
            raise BatchSizeError(f"was timed on it at batch sizes {smallest} to {largest}, too far from {batch}")

    def at(self, batch: int) -> GradientTime:
        """The time at a batch size. Raises BatchSizeError as ``check``."""
        self.check(batch)
        for point in self._points:
            if point.batch == batch:
                return GradientTime(point.seconds, point.error_s / point.seconds)
        low, high = next(
            ((low, high) for low, high in pairwise(self._points) if batch < high.batch), tuple(self._points[-2:])
        )
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


def _point(batch: int, samples: Samples) -> _Point:
    seconds = mean(samples.values)
    return _Point(batch, seconds, standard_error(samples) * seconds)
