"""Members of a cluster that share a kernel slow one another.

They share its memory and often its processors: containers, the parts of a lab, or a GPU and the
cores of its host. Each was timed alone, and while the others computed. With fewer of them a
gradient is taken to lengthen in proportion to the others that compute.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.predict.message_time import standard_error
from planner.profile.file import DeviceProfile, kernels_of
from planner.profile.machine_speed import between
from profilers.records import MachineSpeed, StepProfile
from profilers.stats import mean

#: The operator is told of devices that are so many times slower beside others.
TOLD = 1.05


class KernelMates(NamedTuple):
    """What N devices that share kernels are slowed by.

    steps: their timings.
    together: (N, N) 1 for those that were timed together, and for each and itself.
    error: (N,) relative standard errors of the gradients that were timed beside others; else 0.
    """

    steps: tuple[StepProfile, ...]
    together: Ints
    error: Floats

    def regimes(self, members: Bools) -> Iterator[tuple[Ints, Ints]]:
        """(N,) members beside which each device computes, and the rows of clusters that have these.

        Its own counts, also where it is no member. members: (C, N).
        """
        shared = self.together.sum(axis=0) > 1
        beside = np.where(shared, np.maximum(1, members.astype(np.int64) @ self.together), 1)
        counts, where = np.unique(beside, axis=0, return_inverse=True)
        for number, count in enumerate(counts):
            yield count, np.flatnonzero(where.ravel() == number)

    def slowdowns(self, count: Ints) -> Floats:
        """(N,) how many times as long gradients take beside so many members, its own included."""
        each = zip(self.steps, count.tolist(), strict=True)
        return np.array([1 + part_beside(step, number) * (_slowdown(step) - 1) for step, number in each])

    def speeds(self, count: Ints, alone: Sequence[MachineSpeed | None]) -> tuple[MachineSpeed | None, ...]:
        """The speeds of the processors there. alone: without others; None where unknown."""
        each = zip(self.steps, count.tolist(), alone, strict=True)
        return tuple(speed and speed_beside(step, number) for step, number, speed in each)


def of_steps(steps: Mapping[str, StepProfile]) -> KernelMates | None:
    """Those of devices by name; None where no two were timed together."""
    together = np.eye(len(steps), dtype=np.int64)
    for i, step in enumerate(steps.values()):
        for k, name in enumerate(steps):
            if step.crowded and name in step.crowded.names:
                together[i, k] = together[k, i] = 1
    if together.sum() == len(steps):
        return None
    error = [standard_error(step.crowded.steps.gradient_s) if step.crowded else 0.0 for step in steps.values()]
    return KernelMates(tuple(steps.values()), together, np.array(error))


def part_beside(step: StepProfile, count: int) -> float:
    """The others among ``count`` members, as a part of those beside which a device was timed."""
    others = len(step.crowded.names) - 1 if step.crowded else 0
    return min(1.0, (count - 1) / others) if others else 0.0


def speed_beside(step: StepProfile, count: int) -> MachineSpeed | None:
    """The speed of a device's processor where it is one of so many members on its kernel."""
    return between(step.speed, step.crowded.steps.speed if step.crowded else None, part_beside(step, count))


def notes(devices: Mapping[str, DeviceProfile], steps: Mapping[str, StepProfile]) -> list[str]:
    """What the operator must know of devices that share a kernel."""
    slower = {name: factor for name, step in steps.items() if (factor := _slowdown(step)) >= TOLD}
    kernels = [[name for name in names if name in steps] for names in kernels_of(devices).values()]
    unknown = [name for names in kernels if len(names) > 1 for name in names if not steps[name].crowded]
    found = []
    if slower:
        times = ", ".join(f"{name} {factor:.3g} times" for name, factor in slower.items())
        found.append(f"gradients take longer while the other devices on a kernel compute: {times}")
    if unknown:
        found.append(
            f"not timed beside the other devices on their kernel: {', '.join(unknown)}; to know what they are "
            "slowed by, profile all devices of the kernel with one --fresh"
        )
    return found


def _slowdown(step: StepProfile) -> float:
    if step.crowded is None:
        return 1.0
    return mean(step.crowded.steps.gradient_s.values) / mean(step.gradient_s.values)
