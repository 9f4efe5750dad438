"""The errors that predictions have besides the measured spread, and what intervals then hold.

    python -m benchmarks.interval_fit [--json]

One error of the step of a device, by devices that trained alone, and one of each kind of exchange,
by clusters: the least with which 90 % intervals hold nine of ten recorded runs. They are the table
in ``planner.predict.interval``. The coverage is of runs of each fleet by the errors of all others.
"""

import statistics
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from benchmarks import recorded
from benchmarks.recorded.scoring import STEPS, Case, cases, predicted_s
from benchmarks.reporting import parser, show
from planner.arrays import Floats
from planner.predict.cycle import ALONE, KINDS
from planner.predict.interval import RECORDED, ModelErrors, spread

#: The share of runs that intervals are to hold, and their half width in standard deviations.
COVERED, Z90 = 0.9, 1.644854
#: Errors are whole permille.
GRID = 0.001


class Runs(NamedTuple):
    """Runs of one kind, or of devices alone.

    fleets: of each. off: (n,) logarithm of measured over predicted seconds; spread: (n,) standard
    deviation by the measured means and, of clusters, by the error of a step.
    """

    fleets: tuple[str, ...]
    off: Floats
    spread: Floats

    def least_error(self, but: str | None = None) -> float:
        """The least error with which intervals hold COVERED of the runs of all fleets but one."""
        rows = np.array([fleet != but for fleet in self.fleets])
        lacking = np.maximum(0.0, (self.off[rows] / Z90) ** 2 - self.spread[rows] ** 2)
        return float(np.ceil(np.sqrt(np.quantile(lacking, COVERED)) / GRID) * GRID)

    def held(self, fleet: str, error: float) -> list[bool]:
        """Whether intervals hold the runs of a fleet."""
        rows = np.array([each == fleet for each in self.fleets])
        inside = np.abs(self.off[rows]) <= Z90 * np.hypot(self.spread[rows], error)
        return [bool(each) for each in inside]


def runs_of(scored: Iterable[Case], errors: ModelErrors) -> dict[str, Runs]:
    """By kind, in the order of KINDS, behind devices alone."""
    found: dict[str, list[tuple[str, float, float]]] = {name: [] for name in (ALONE, *KINDS)}
    for case in scored:
        deviation = spread(case.inputs, case.candidates, STEPS, errors=errors).deviation(1.0, 0.0)
        each = zip(predicted_s(case), deviation, case.repeated_s, case.alone, strict=True)
        for predicted, wide, repeated, alone in each:
            rows = [(case.fleet, np.log(measured / predicted), wide) for measured in repeated]
            found[ALONE if alone else case.kind] += rows
    return {
        kind: Runs(tuple(row[0] for row in rows), *np.array([row[1:] for row in rows]).T)
        for kind, rows in found.items()
        if rows
    }


def main() -> None:
    options = parser(__doc__).parse_args()
    scored = cases(recorded.load())
    nothing = ModelErrors(step=0.0, watts=0.0, kinds=dict.fromkeys(KINDS, 0.0))
    step = runs_of([_only_alone(case) for case in scored], nothing)[ALONE].least_error()
    by_kind = runs_of(scored, nothing._replace(step=step))
    by_kind[ALONE] = runs_of([_only_alone(case) for case in scored], nothing)[ALONE]
    show(
        "Errors of predictions, and coverage of 90 % intervals", [_row(*each) for each in by_kind.items()], options.json
    )


def _only_alone(case: Case) -> Case:
    rows = np.flatnonzero(case.alone)
    return case._replace(
        candidates=case.candidates.at(rows),
        sizes=case.sizes[rows],
        measured_s=case.measured_s[rows],
        repeated_s=tuple(case.repeated_s[row] for row in rows),
    )


def _row(kind: str, runs: Runs) -> dict[str, object]:
    fleets = sorted(set(runs.fleets))
    left_out = [held for fleet in fleets for held in runs.held(fleet, runs.least_error(but=fleet))]
    present = RECORDED.step if kind == ALONE else RECORDED.kinds[kind]
    return {
        "runs": kind,
        "fleets": len(fleets),
        "number": len(runs.off),
        "spread %": round(100 * statistics.median(runs.spread), 1),
        "error %": round(100 * runs.least_error(), 1),
        "table %": round(100 * present, 1),
        "held, left out %": round(100 * statistics.fmean(left_out), 1),
        "held by table %": round(
            100 * statistics.fmean(each for fleet in fleets for each in runs.held(fleet, present)), 1
        ),
    }


if __name__ == "__main__":
    main()
