"""Candidates differ in their costs by which members compute at one time on a kernel.

How long a member computes in its cycle says how much it slows the others (``kernel_mates``), and
these slow it in turn. Cycles are therefore solved as if all computed all the time; then each is
slowed by the others for as long as they compute in these.
"""

from collections.abc import Iterator

import numpy as np

from planner.arrays import Floats, Ints
from planner.predict import step_cycle
from planner.predict.clusters import Candidates
from planner.predict.costs import Costs

#: Parts of a member by which means of computing members are told apart.
PARTS = 10


def regimes(costs: Costs, candidates: Candidates) -> list[tuple[Costs, Ints]]:
    """The costs, and the rows of the candidates that have them, by who computes on a kernel."""
    if costs.mates is None:
        return [(costs, np.arange(candidates.hosts.size))]
    computing = np.zeros((candidates.hosts.size, len(costs.names)))
    for others, rows in _alike(costs.mates.others(candidates.members(len(costs.names)))):
        computing[rows] = _computing(costs, others, candidates.at(rows))
    return [(_beside(costs, others), rows) for others, rows in _alike(np.round(PARTS * computing) / PARTS)]


def of_cluster(costs: Costs, candidates: Candidates, index: int) -> Costs:
    """The costs in one of the candidates."""
    return regimes(costs, candidates.at(np.array([index])))[0][0]


def _alike(others: Floats) -> Iterator[tuple[Floats, Ints]]:
    """Each different row, and which rows are like it."""
    found, where = np.unique(others, axis=0, return_inverse=True)
    for number, row in enumerate(found):
        yield row, np.flatnonzero(where.ravel() == number)


def _computing(costs: Costs, others: Floats, candidates: Candidates) -> Floats:
    """(C, N) mean others that compute while a member does, if so many, (N,), slowed it."""
    assert costs.mates is not None, "the caller asked"
    slowed, members = _beside(costs, others), candidates.members(len(costs.names))
    cycle_s = step_cycle.solve(slowed, candidates).cycle_s
    duty = np.where(members, np.minimum(1.0, step_cycle.gradients_s(slowed, candidates) / cycle_s), 0.0)
    return costs.mates.computing(duty)


def _beside(costs: Costs, others: Floats) -> Costs:
    """The costs while so many others, (N,), compute on the kernel of each device."""
    assert costs.mates is not None, "the caller asked"
    slower, errors = costs.mates.slowdowns(others), costs.devices.errors
    found = costs.with_gradients(costs.devices.gradient_s * slower)
    devices = found.devices._replace(
        image_s=costs.devices.image_s * slower,
        speeds=costs.mates.speeds(others, costs.devices.speeds),
        errors=errors._replace(gradient=np.hypot(errors.gradient, costs.mates.errors(others))),
    )
    shares, own = costs.shares, costs.torch
    return found._replace(
        devices=devices,
        shares=shares and shares._replace(gradient_s=shares.gradient_s * slower[:, None]),
        torch=own and own._replace(own_cpu_s=own.own_cpu_s * slower),
        mates=None,
    )
