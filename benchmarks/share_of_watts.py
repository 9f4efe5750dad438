"""Idle watts and a share of the dynamic ones, scored on measurements that were held out.

Without files and tables, which are ``power_share.py``'s. Errors are predicted / measured - 1.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from planner.arrays import Bools, Floats
from power_models import nameplate
from power_models.table import CsvFile, Ints, Words

SHARE, BUSY = "idle + share", "always busy"


class Runs(NamedTuple):
    """Runs of a device that is busy for a share of the time, (R,) each.

    group: what is held out together.
    busy_w: watts of the same workload's reference run; None where they are fitted to other groups.
    """

    group: Ints
    share: Floats
    watts: Floats
    busy_w: Floats | None


class Node(NamedTuple):
    """Runs of a node that is always busy, (R,) each.

    result: who ran a benchmark, on which node of this kind.
    wall_w, behind_w: watts at the wall, and behind its supplies.
    """

    benchmark: Words
    result: Words
    wall_w: Floats
    behind_w: Floats


def errors(runs: Runs) -> dict[str, Floats]:
    """(R,) errors by form, each group predicted by what the other groups tell."""
    found = {form: np.empty(len(runs.watts)) for form in (SHARE, BUSY)}
    for group in np.unique(runs.group):
        held = runs.group == group
        idle_w, busy_w = _fitted(runs, ~held)
        if runs.busy_w is None:
            busy, flat = np.full(held.sum(), busy_w), np.full(held.sum(), runs.watts[~held].mean())
        else:
            busy = flat = runs.busy_w[held]
        predicted = nameplate.watts(np.array(idle_w), busy, runs.share[held])
        for form, watts in ((SHARE, predicted), (BUSY, flat)):
            found[form][held] = watts / runs.watts[held] - 1
    return found


def batch_sizes(file: CsvFile, least_limit_w: float = 0.0) -> Runs:
    """Training runs at these power limits but the quickest of each workload, optimizer and limit.

    The quickest one is the reference. A share is its seconds over those of a run. Workloads are
    held out whole.
    """
    table, watts, seconds = file.table(), file.positive("average_power"), file.positive("time_per_epoch")
    jobs = table.keys(("dataset", "network", "optimizer", "power_limit"))
    share, busy_w = np.ones(table.rows), np.zeros(table.rows)
    chosen = table.numbers("power_limit") >= least_limit_w
    for job in np.unique(jobs):
        rows = np.flatnonzero(jobs == job)
        reference = rows[np.argmin(seconds[rows])]
        share[rows], busy_w[rows] = seconds[reference] / seconds[rows], watts[reference]
        chosen[reference] = False
    return Runs(table.keys(("dataset", "network"))[chosen], share[chosen], watts[chosen], busy_w[chosen])


def programs(file: CsvFile) -> list[Runs]:
    """Programs by the activity of the multiprocessors, apart for each clock."""
    table, watts = file.table(), file.positive("average_power")
    clocks, names, share = table.numbers("core_frequency"), table.keys(("benchmark",)), table.numbers("SMACT")
    return [Runs(names[at], share[at], watts[at], None) for at in (clocks == clock for clock in np.unique(clocks))]


def node(file: CsvFile) -> Node:
    """Runs that were metered on both sides of the supplies; those that are there twice, once."""
    columns, watts = file.table().columns, file.positive("mean_node_watts")
    once = np.array(["_raw_" not in run for run in columns["run"]])
    wall, behind = (np.flatnonzero(once & (columns["kind"] == kind)) for kind in ("ac", "dc"))
    metered = dict(zip(columns["run"][behind], watts[behind], strict=True))
    wall = np.array([row for row in wall if columns["run"][row] in metered])
    runs = columns["run"][wall]
    return Node(
        columns["benchmark"][wall],
        np.array([run.rsplit("_", 1)[0] for run in runs]),
        watts[wall],
        np.array([metered[run] for run in runs]),
    )


def of_other_results(of: Node) -> Floats:
    """Errors of the mean of the same benchmark in other results, of runs that have some."""
    found = []
    for benchmark, result, watts, _ in zip(*of, strict=True):
        others = (of.benchmark == benchmark) & (of.result != result)
        found += [of.wall_w[others].mean() / watts - 1] if others.any() else []
    return np.array(found)


def of_other_benchmarks(of: Node) -> Floats:
    """(R,) errors of the mean over all other benchmarks."""
    return np.array([
        of.wall_w[of.benchmark != benchmark].mean() / watts - 1
        for benchmark, watts in zip(of.benchmark, of.wall_w, strict=True)
    ])  # fmt: skip


def behind_supplies(of: Node) -> Floats:
    """(R,) errors of watts at the wall by those behind the supplies and the others' ratio."""
    ratio = of.wall_w / of.behind_w
    return np.array(
        [
            ratio[of.benchmark != benchmark].mean() / each - 1
            for benchmark, each in zip(of.benchmark, ratio, strict=True)
        ]
    )


def _fitted(runs: Runs, known: Bools) -> tuple[float, float]:
    """Idle watts, and busy ones where no reference tells them, by squares of relative errors."""
    idle, share, watts = (1 - runs.share)[known], runs.share[known], runs.watts[known]
    if runs.busy_w is None:
        (idle_w, busy_w), _ = nnls(np.column_stack([idle, share]) / watts[:, None], np.ones(len(watts)))
        return float(idle_w), float(busy_w)
    (idle_w,), _ = nnls((idle / watts)[:, None], 1 - share * runs.busy_w[known] / watts)
    return float(idle_w), np.nan
