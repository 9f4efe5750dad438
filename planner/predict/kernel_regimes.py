"""Candidates differ in their costs by which members share a kernel (``kernel_mates``)."""

import numpy as np

from planner.arrays import Bools, Ints
from planner.predict.clusters import Candidates
from planner.predict.costs import Costs


def regimes(costs: Costs, candidates: Candidates) -> list[tuple[Costs, Ints]]:
    """The costs, and the rows of the candidates that have them, by who shares a kernel."""
    if costs.mates is None:
        return [(costs, np.arange(candidates.hosts.size))]
    beside = costs.mates.beside(candidates.members(len(costs.names)))
    found, where = np.unique(beside, axis=0, return_inverse=True)
    return [(_beside(costs, row), np.flatnonzero(where.ravel() == number)) for number, row in enumerate(found)]


def of_cluster(costs: Costs, candidates: Candidates, index: int) -> Costs:
    """The costs in one of the candidates."""
    return regimes(costs, candidates.at(np.array([index])))[0][0]


def _beside(costs: Costs, beside: Bools) -> Costs:
    """The costs of clusters in which devices compute beside others on their kernels, (N,)."""
    assert costs.mates is not None, "the caller asked"
    slower, errors = costs.mates.slowdowns(beside), costs.devices.errors
    found, own = costs.with_slower_gradients(slower), costs.torch
    wider = errors._replace(gradient=np.hypot(errors.gradient, costs.mates.errors(beside)))
    return found._replace(
        devices=found.devices._replace(errors=wider),
        torch=own and own._replace(own_cpu_s=own.own_cpu_s * slower),
        mates=None,
    )
