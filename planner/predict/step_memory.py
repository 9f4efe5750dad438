"""The memory of a step is a line in the batch size, on the host and on its accelerator.

Activations are in proportion to the batch; weights, gradients and the framework are there for any.
The line is that of least squares, raised until no measured peak lies above it: to come a little
short ends a run, and to have a little left costs nothing.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from planner.profile.file import DeviceProfile
from profilers.records import StepMemory, StepProfile

#: Share of the available memory that is left to other programs, and to what was not measured: data
#: sets, messages and fragments.
MARGIN = 0.1
HOST, ACCELERATOR, SHARED = "memory", "GPU memory", "memory, which its GPU shares"


class MemoryLine(NamedTuple):
    """Bytes of a step: those of any batch, and those of one sample more."""

    base_bytes: float
    sample_bytes: float

    def at(self, batch: int) -> float:
        """Bytes at a batch size."""
        return self.base_bytes + self.sample_bytes * batch

    def largest(self, limit_bytes: float) -> float:
        """The largest batch size within a limit, a whole number; infinite where any fits."""
        if self.base_bytes > limit_bytes:
            return 0.0
        if self.sample_bytes <= 0:
            return math.inf
        return math.floor((limit_bytes - self.base_bytes) / self.sample_bytes + 1e-9)


def fit(points: Sequence[tuple[int, float]]) -> MemoryLine | None:
    """The line over measured (batch, bytes); None for fewer than two sizes, which have no slope."""
    if len(points) < 2:
        return None
    batches, used = np.array(points, float).T
    apart = batches - batches.mean()
    slope = max(0.0, float(apart @ used / (apart @ apart)))
    return MemoryLine(float((used - slope * batches).max()), slope)


class Room(NamedTuple):
    """One memory of a device: what it is called, the line of a step, and the bytes available."""

    name: str
    line: MemoryLine
    available_bytes: float

    @property
    def usable_bytes(self) -> float:
        """The available bytes without the margin."""
        return (1 - MARGIN) * self.available_bytes


class StepRoom:
    """Which batch sizes of a model fit into a device; all that nothing is known against."""

    def __init__(self, step: StepProfile, available_bytes: float) -> None:
        """available_bytes: of main memory."""
        self._too_large = None if step.memory is None else step.memory.too_large
        self.rooms = [] if step.memory is None else _rooms(step.memory, available_bytes)

    @classmethod
    def on(cls, device: DeviceProfile, step: StepProfile) -> "StepRoom":
        """That of a timed model on its device."""
        return cls(step, math.inf if device.facts is None else float(device.facts.available_bytes))

    def largest(self) -> float:
        """The largest batch size that fits, a whole number; infinite where none is known."""
        below = math.inf if self._too_large is None else self._too_large - 1.0
        return min([below, *(room.line.largest(room.usable_bytes) for room in self.rooms)])


def _rooms(memory: StepMemory, host_available_bytes: float) -> list[Room]:
    host = [(each.batch, float(each.host_bytes)) for each in memory.batches if each.host_bytes is not None]
    gpu = [(each.batch, float(each.accelerator_bytes)) for each in memory.batches if each.accelerator_bytes is not None]
    if memory.is_shared:
        by_batch = dict(gpu)
        both = [(batch, used + by_batch[batch]) for batch, used in host if batch in by_batch]
        lines = [(SHARED, fit(both), host_available_bytes)]
    else:
        available_bytes = memory.accelerator_available_bytes
        lines = [
            (HOST, fit(host), host_available_bytes),
            (ACCELERATOR, fit(gpu), math.inf if available_bytes is None else float(available_bytes)),
        ]
    return [Room(name, line, available) for name, line, available in lines if line and math.isfinite(available)]
