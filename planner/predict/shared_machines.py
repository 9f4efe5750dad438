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
    for group in kernels_of({name: profile.devices[name] for name in names}):
        more = _slowdown([steps[name] for name in group]) - 1.0
        for name in group:
            beside = steps[name].beside
            if beside is not None and more > 0:
                whole = math.fsum(_load(profile, other) for other in beside.names)
                for other in set(beside.names) & set(group):
                    found[names.index(name), names.index(other)] = more * _load(profile, other) / whole
    return found if found.any() else None


def _slowdown(timed: list[StepProfile]) -> float:
    """How many times as long gradients are beside all others; 1 where that is within its error.

    The geometric mean over devices, of which each varies too much to be told apart.
    """
    logs, errors = [], []
    for step in timed:
        if step.beside is not None:
            logs.append(math.log(mean(step.beside.gradient_s.values) / mean(step.gradient_s.values)))
            errors.append(math.hypot(standard_error(step.beside.gradient_s), standard_error(step.gradient_s)))
    if not logs:
        return 1.0
    error = math.hypot(*errors) / len(logs)
    typical = math.fsum(logs) / len(logs)
    return math.exp(typical) if typical > error else 1.0


def _load(profile: Profile, name: str) -> float:
    """Cores that a device loads while it computes; that of one that is gone counts as one."""
    cores = profile.devices[name].cores if name in profile.devices else None
    return 1.0 if cores is None else min(1.0, cores)
