"""Costs at the speeds that processors have at another time, by their reference loops. Pure.

What took a processor some time at one speed takes as many times as long as the loop does. Whole
steps, parts of them and messages were timed minutes apart, each beside rounds of the loop.
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
    timed at an unknown speed stays as it is, and what a GPU computes. So do the seconds of a link
    between devices, which are mostly the network's.
    """

    def slowdowns(before: Sequence[MachineSpeed | None]) -> Floats:
        return np.array([slowdown(now.get(name), each) or 1.0 for name, each in zip(costs.names, before, strict=True)])

    gradients, parts, messages = map(slowdowns, (timed, costs.devices.parts_speeds, costs.pairs.speeds))
    slower = costs.with_gradients(costs.devices.gradient_s * gradients)
    return slower._replace(
        devices=slower.devices.slowed(updates=gradients, parts=parts),
        pairs=costs.pairs.slowed(own=parts, others=messages),
        torch=costs.torch and costs.torch.slowed(gradients=gradients, messages=messages),
    )
