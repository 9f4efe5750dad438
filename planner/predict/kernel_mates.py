"""Members of a cluster that share a kernel slow one another.

They share its memory and often its processors: containers, the parts of a lab, or a GPU and the
cores of its host. Each was timed alone, and while the others computed. In a cluster of two or more
of them gradients take the second time: also where few others compute, their messages come between
two steps, and what a step finds in a cache is no longer there (benchmarks/log/results.md).
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.profile.file import DeviceProfile, kernels_of
from profilers.records.steps import StepProfile

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

    def beside(self, members: Bools) -> Bools:
        """(C, N) whether a device's kernel has two members or more. members: (C, N)."""
        return members.astype(np.int64) @ self.together > 1

    def slowdowns(self, beside: Bools) -> Floats:
        """(N,) how many times as long gradients take. beside: (N,) whether beside others."""
        return np.where(beside, [_slowdown(step) for step in self.steps], 1.0)

    def errors(self, beside: Bools) -> Floats:
        """(N,) relative standard errors of the slowdowns."""
        return np.where(beside, self.error, 0.0)


def of_steps(steps: Mapping[str, StepProfile]) -> KernelMates | None:
    """Those of devices by name; None where no two were timed together."""
    together = np.eye(len(steps), dtype=np.int64)
    for i, step in enumerate(steps.values()):
        for k, name in enumerate(steps):
            if step.contention and name in step.contention.names:
                together[i, k] = together[k, i] = 1
    if together.sum() == len(steps):
        return None
    error = [step.contention.error if step.contention else 0.0 for step in steps.values()]
    return KernelMates(tuple(steps.values()), together, np.array(error))


def notes(devices: Mapping[str, DeviceProfile], steps: Mapping[str, StepProfile]) -> list[str]:
    """What the operator must know of devices that share a kernel."""
    slower = {name: factor for name, step in steps.items() if (factor := _slowdown(step)) >= TOLD}
    kernels = [[name for name in names if name in steps] for names in kernels_of(devices).values()]
    unknown = [name for names in kernels if len(names) > 1 for name in names if not steps[name].contention]
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
    return 1.0 if step.contention is None else step.contention.factor
