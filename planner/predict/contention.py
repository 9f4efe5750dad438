"""Contention: devices that share a kernel slow one another's gradients, each by one factor.

Containers, the parts of a lab, or a GPU and the cores of its host share memory, and often
processors. A device's factor was timed once, while all others on its kernel computed.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.profile.file import DeviceProfile, kernels_of
from profilers.records.steps import StepProfile

#: The operator is told of devices that are so many times slower beside others.
TOLD = 1.05


class KernelContention(NamedTuple):
    """What devices that share a kernel are slowed by, (N,) each.

    factor: how many times as long a gradient takes while the others compute.
    kernel: the same number for devices that were timed together.
    """

    factor: Floats
    kernel: Ints

    def of(self, members: Bools) -> Floats:
        """(C, N) factors in clusters of these members, (C, N): 1 where no other shares a kernel."""
        together = members.astype(np.int64) @ (self.kernel[:, None] == self.kernel).astype(np.int64)
        return np.where(together > 1, self.factor, 1.0)


def of_steps(steps: Mapping[str, StepProfile]) -> KernelContention:
    """The contention of devices, in the order of their timings."""
    return KernelContention(np.array([factor_of(step) for step in steps.values()]), _kernels(steps))


def factor_of(step: StepProfile) -> float:
    """How many times as long a gradient takes beside others; 1 where that was not timed."""
    return 1.0 if step.contention is None else step.contention.factor


def _kernels(steps: Mapping[str, StepProfile]) -> Ints:
    """(N,) the same number for devices that were timed together, or both with a third."""
    together = np.eye(len(steps), dtype=np.bool_)
    for i, step in enumerate(steps.values()):
        beside = () if step.contention is None else step.contention.names
        together[i] |= [name in beside for name in steps]
    together |= together.T
    for _ in range(len(steps).bit_length()):
        together = together @ together
    return np.asarray(together.argmax(axis=1))


def notes(devices: Mapping[str, DeviceProfile], steps: Mapping[str, StepProfile]) -> Iterable[str]:
    """Which devices are slower beside others, and of which nobody knows."""
    slower = {name: factor for name, step in steps.items() if (factor := factor_of(step)) >= TOLD}
    kernels = [[name for name in names if name in steps] for names in kernels_of(devices).values()]
    unknown = [name for names in kernels if len(names) > 1 for name in names if not steps[name].contention]
    if slower:
        times = ", ".join(f"{name} {factor:.3g} times" for name, factor in slower.items())
        yield f"gradients take longer while the other devices on a kernel compute: {times}"
    if unknown:
        yield (
            f"not timed beside the other devices on their kernel: {', '.join(unknown)}; to know what they are "
            "slowed by, profile all devices of the kernel with one --fresh"
        )
