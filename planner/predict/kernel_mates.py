"""Members of a cluster that share a kernel slow one another.

They share its memory and often its processors: containers, the parts of a lab, or a GPU and the
cores of its host. Each was timed alone, and while the others computed. A gradient is taken to
lengthen in proportion to the others that compute meanwhile, fewer or for a part of its time.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.predict.message_time import standard_error
from planner.profile.file import DeviceProfile, kernels_of
from planner.profile.machine_speed import between
from profilers.records import MachineSpeed, StepProfile
from profilers.stats import mean

#: Devices on one kernel whose members are told apart. Of more, all members are slowed alike, for
#: there are too many clusters.
MOST_APART = 6
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

    def others(self, members: Bools) -> Floats:
        """(C, N) other members on the kernel of each device; of no member, as if it were one."""
        shared = self.together.sum(axis=0) > 1
        all_of_it = members.astype(np.int64) @ self.together
        return np.where(shared, np.maximum(0.0, all_of_it - 1.0), 0.0)

    def computing(self, duty: Floats) -> Floats:
        """(C, N) mean others that compute while a member does; 0 for no member.

        duty: (C, N) share of its time in which a member computes, 0 for no member. Members that
            begin together compute beside one another for longer than that. In labs their gradients
            were no longer for it (docs/results.md).
        """
        apart = self.together - np.eye(len(self.steps), dtype=np.int64)
        found = np.where(duty > 0, duty @ apart, 0.0)
        return found if self.together.sum(axis=0).max() <= MOST_APART else self._means(found, duty > 0)

    def _means(self, values: Floats, members: Bools) -> Floats:
        """(C, N) of each kernel's members, also for devices on it that are none."""
        count = np.maximum(1, members.astype(np.int64) @ self.together)
        return np.asarray(np.where(members, values, 0.0) @ self.together / count)

    def slowdowns(self, others: Floats) -> Floats:
        """(N,) how many times as long gradients take while so many others, (N,), compute."""
        return 1 + self._parts(others) * (np.array([_slowdown(step) for step in self.steps]) - 1)

    def errors(self, others: Floats) -> Floats:
        """(N,) relative standard errors of the slowdowns."""
        return self._parts(others) * self.error

    def speeds(self, others: Floats, alone: Sequence[MachineSpeed | None]) -> tuple[MachineSpeed | None, ...]:
        """The speeds of the processors there. alone: without others; None where unknown."""
        each = zip(self.steps, self._parts(others).tolist(), alone, strict=True)
        return tuple(speed and _speed_beside(step, part) for step, part, speed in each)

    def _parts(self, others: Floats) -> Floats:
        """(N,) so many others as parts of those beside which the devices were timed."""
        timed = np.array([len(step.crowded.names) - 1 if step.crowded else 0 for step in self.steps])
        return np.minimum(1.0, np.divide(others, timed, out=np.zeros_like(others), where=timed > 0))


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


def _speed_beside(step: StepProfile, part: float) -> MachineSpeed | None:
    return between(step.speed, step.crowded.steps.speed if step.crowded else None, part)


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
