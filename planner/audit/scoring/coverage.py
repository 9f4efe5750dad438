"""Coverage: how many runs took a time inside of the 90 % interval of their prediction.

An interval that holds what it says covers 85 to 95 % of many runs.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from planner.audit.scoring.cases import Case
from planner.audit.scoring.selections import Hits
from planner.predict.calibration import Calibration
from planner.predict.predict import predict

#: Half of the two-sided 90 % interval of a normal distribution, in standard deviations.
Z90 = 1.644854
#: A smaller spread, as a share, is none: it comes from rounding.
ROUNDING = 1e-9


class Interval(NamedTuple):
    """A single run beside its predicted interval.

    exchange: the kind of it between members. inside: None where no spread is known.
    """

    audit: str
    model: str
    exchange: str
    alone: bool
    inside: bool | None


def intervals(cases: Sequence[Case], calibration: Calibration | None) -> tuple[Interval, ...]:
    """Every run of all cases. calibration: of the intervals; None for the measured spread alone."""
    return tuple(each for case in cases for each in _of_case(case, calibration))


def coverage(of: Iterable[Interval], alone: bool, **where: str) -> Hits | None:
    """The runs inside, among those of devices alone or of clusters; None where none is known.

    where: restricts to one model, one audit or one kind of exchange.
    """
    return Hits.among(
        each.inside
        for each in of
        if each.alone == alone and all(getattr(each, group) == name for group, name in where.items())
    )


def _of_case(case: Case, calibration: Calibration | None) -> Iterable[Interval]:
    costs = case.costs if calibration is None else calibration.applied_to(case.costs)
    predicted = predict(costs, case.candidates, case.steps)
    spread = np.sqrt(predicted.time_errors.variance())
    off = np.abs(np.log(case.measured.time_s) - np.log(predicted.time_s))
    alone = case.members.sum(axis=1) == 1
    for row in range(alone.size):
        inside = bool(off[row] <= Z90 * spread[row]) if spread[row] > ROUNDING else None
        yield Interval(case.audit, case.model, case.exchange, bool(alone[row]), inside)
