"""Costs at the speeds that processors have at another time, by their reference loops. Pure.

What took a processor some time at one speed takes as many times as long as the loop does. Whole
steps and parts of them were timed minutes apart, each beside rounds of the loop.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from planner.arrays import Floats
from planner.predict.costs import Costs
from planner.profile.machine_speed import slowdown
from profilers.records.readings import MachineSpeed


def at_speeds(costs: Costs, now: Mapping[str, MachineSpeed | None], timed: Sequence[MachineSpeed | None]) -> Costs:
    """The costs where processors are as fast as ``now``, by device.

    timed: (N,) speeds while gradients were timed as in the cluster that is predicted. What was
    timed at an unknown speed stays as it is, and what a GPU computes. So do messages: a round of
    the loop right after one takes up to a third more or less than beside a gradient, which tells
    nothing of the machine (docs/results.md).
    """
    devices, own = costs.devices, costs.torch
    present = [now.get(name) for name in costs.names]
    gradients, updates, parts = (
        _slowdowns(present, before) for before in (timed, devices.speeds, devices.parts_speeds)
    )
    # What DistributedDataParallel adds was timed with the parts; beside others it slows as
    # gradients do.
    added = gradients * _slowdowns(devices.speeds, devices.parts_speeds)
    by_processor = devices.step_cpu_s > 0
    slower = costs.with_slower_gradients(gradients)
    return slower._replace(
        devices=slower.devices.slowed(updates=updates, parts=np.where(by_processor, parts, 1.0)),
        torch=own and own._replace(own_cpu_s=own.own_cpu_s * added),
    )


def _slowdowns(now: Sequence[MachineSpeed | None], before: Sequence[MachineSpeed | None]) -> Floats:
    """(N,) how many times as long the loops take; 1 where that is unknown."""
    return np.array([slowdown(after, each) or 1.0 for after, each in zip(now, before, strict=True)])
