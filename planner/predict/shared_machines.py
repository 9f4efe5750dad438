"""Devices on one machine slow one another down: by as much as was measured, as far as they compute.

A machine's processors, caches and buses are shared by its GPUs' host processes, its containers, or
the parts of a lab. How much longer a gradient takes beside the others was measured with all of them
computing. Fewer others, and others that wait for exchanges, slow it in proportion to their load.
"""

import math
from collections.abc import Mapping

import numpy as np

from planner.arrays import Floats
from planner.predict.message_time import standard_error
from planner.profile.file import Profile, kernels_of
from profilers.records import StepProfile
from profilers.stats import mean


def slowed_by(profile: Profile, steps: Mapping[str, StepProfile]) -> Floats | None:
    """(N, N) share by which a gradient of the row's device is longer while the column's computes.

    steps: the timings that count, by device. None where no device slows another down.
    """
    names = list(steps)
    found = np.zeros((len(names), len(names)))
    for group in kernels_of({name: profile.devices[name] for name in names}).values():
        for name in group:
            beside, more = steps[name].beside, _slowdown(steps[name]) - 1.0
            if beside is not None and more > 0:
                whole = math.fsum(_load(profile, other) for other in beside.names)
                for other in set(beside.names) & set(group):
                    found[names.index(name), names.index(other)] = more * _load(profile, other) / whole
    return found if found.any() else None


def _slowdown(timed: StepProfile) -> float:
    """How many times as long a gradient is beside all others; 1 where that is within its error."""
    if timed.beside is None:
        return 1.0
    ratio = mean(timed.beside.gradient_s.values) / mean(timed.gradient_s.values)
    error = math.hypot(standard_error(timed.beside.gradient_s), standard_error(timed.gradient_s))
    return ratio if ratio > 1.0 + error else 1.0


def _load(profile: Profile, name: str) -> float:
    """Cores that a device loads while it computes; that of one that is gone counts as one."""
    cores = profile.devices[name].cores if name in profile.devices else None
    return 1.0 if cores is None else min(1.0, cores)
