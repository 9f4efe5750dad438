"""Members of a cluster that share a kernel slow one another.

They share its memory and often its processors: containers, virtual machines, the parts of a lab, or
a GPU and the cores of its host. Each was timed alone, and while all of them computed. With fewer of
them a gradient is taken to lengthen in proportion to the others that compute.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.predict.message_time import standard_error
from planner.profile.file import Profile, kernels_of
from profilers.records import MachineSpeed, StepProfile
from profilers.stats import mean


class KernelMates(NamedTuple):
    """What N devices that share kernels are slowed by.

    kernels: (N,) numbers of their kernels.
    devices: (N,) how many of a kernel computed while a device was timed beside them, 1 for none.
    slowdown, error: (N,) how many times as long its gradient took then, and its relative standard
        error.
    speeds: of its processor then; None where unknown.
    """

    kernels: Ints
    devices: Ints
    slowdown: Floats
    error: Floats
    speeds: tuple[MachineSpeed | None, ...]

    def regimes(self, members: Bools) -> Iterator[tuple[Ints, Ints]]:
        """(N,) members on the kernel of each device, and the rows of clusters that have these.

        members: (C, N).
        """
        of_kernel = (self.kernels[:, None] == np.unique(self.kernels)).astype(np.int64)
        counts, where = np.unique(members.astype(np.int64) @ of_kernel, axis=0, return_inverse=True)
        for number, count in enumerate(counts):
            yield of_kernel @ count, np.flatnonzero(where.ravel() == number)

    def slowdowns(self, count: Ints) -> Floats:
        """(N,) how many times as long gradients take where ``count`` members are on its kernel."""
        others = np.clip(count - 1, 0, self.devices - 1) / np.maximum(1, self.devices - 1)
        return np.asarray(1 + (self.slowdown - 1) * others)


def of_profile(profile: Profile, steps: Mapping[str, StepProfile]) -> KernelMates | None:
    """Those of the devices in ``steps``, in that order; None where no two were timed together."""
    crowded = [step.crowded for step in steps.values()]
    if not any(crowded):
        return None
    kernels = {name: number for number, names in enumerate(kernels_of(profile.devices).values()) for name in names}
    return KernelMates(
        kernels=np.array([kernels[name] for name in steps]),
        devices=np.array([each.devices if each else 1 for each in crowded]),
        slowdown=np.array([_slowdown(step) for step in steps.values()]),
        error=np.array([standard_error(each.steps.gradient_s) if each else 0.0 for each in crowded]),
        speeds=tuple(
            each.steps.speed if each and step.accelerator == "cpu" else None
            for each, step in zip(crowded, steps.values(), strict=True)
        ),
    )


def _slowdown(step: StepProfile) -> float:
    if step.crowded is None:
        return 1.0
    return mean(step.crowded.steps.gradient_s.values) / mean(step.gradient_s.values)
