"""Candidates differ in their costs by which members share a kernel (``kernel_mates``)."""

import numpy as np

from planner.arrays import Ints
from planner.predict.clusters import Candidates
from planner.predict.costs import Costs


def regimes(costs: Costs, candidates: Candidates) -> list[tuple[Costs, Ints]]:
    """The costs, and the rows of the candidates that have them, by who shares a kernel."""
    if costs.mates is None:
        return [(costs, np.arange(candidates.hosts.size))]
    found = costs.mates.regimes(candidates.members(len(costs.names)))
    return [(_beside(costs, count), rows) for count, rows in found]


def of_cluster(costs: Costs, candidates: Candidates, index: int) -> Costs:
    """The costs in one of the candidates."""
    return regimes(costs, candidates.at(np.array([index])))[0][0]


def _beside(costs: Costs, count: Ints) -> Costs:
    """The costs where each device is one of so many members on its kernel, (N,)."""
    assert costs.mates is not None, "the caller asked"
    slower, errors = costs.mates.slowdowns(count), costs.devices.errors
    found = costs.with_gradients(costs.devices.gradient_s * slower)
    beside = np.where(count > 1, costs.mates.error, 0.0)
    devices = found.devices._replace(
        image_s=costs.devices.image_s * slower,
        speeds=costs.mates.speeds(count, costs.devices.speeds),
        errors=errors._replace(gradient=np.hypot(errors.gradient, beside)),
    )
    shares, own = costs.shares, costs.torch
    return found._replace(
        devices=devices,
        shares=shares and shares._replace(gradient_s=shares.gradient_s * slower[:, None]),
        torch=own and own._replace(own_cpu_s=own.own_cpu_s * slower),
        mates=None,
    )
