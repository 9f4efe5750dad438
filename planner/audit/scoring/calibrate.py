"""The errors of predictions are fitted to audits, and tested on fleets that were left out.

See ``planner.predict.calibration`` for the model. The squares of errors, less what the measured
spread explains, are fitted by non-negative least squares, each weighed by the variance that the fit
gives it. Large errors are more frequent than in a normal distribution, and a fleet that was not
audited differs from those that were. So the fitted errors of time are stretched until nine of ten
runs of fleets that were left out lie in their 90 % intervals (conformal prediction). Whether
intervals hold is told by runs of a fleet that was in neither the fit nor the stretch.
"""

import datetime
import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from planner.arrays import Bools, Floats, Ints
from planner.audit.scoring.cases import Case
from planner.audit.scoring.coverage import Z90, Interval
from planner.errors import AuditError
from planner.predict.calibration import Calibration, ExchangeError
from planner.predict.costs import Costs, ModelErrors
from planner.predict.predict import Predictions, predict
from planner.profile.file import Profile
from planner.provenance import NAMEPLATE
from profilers.records.json_values import SCHEMA

#: Share of runs that are to lie in their intervals.
COVERED = 0.9
#: Rounds of weighing anew; they settle after a few.
WEIGHINGS = 20
#: Least share of the mean variance that a weight counts with, so that no run decides alone.
LEAST_VARIANCE = 0.05
#: Fewest fleets of which one can be left out.
FEWEST_FLEETS = 2
#: A kind of exchange has an error of its own if its runs tell as much of it as so many that do
#: nothing but exchange. A run counts x^2 whose exchanges take a share x of its time: 66 runs of
#: local SGD told as much as one, and the error would be 0.8 of such a part (docs/results.md).
FEWEST_EXCHANGES = 10.0
#: All kinds that tell less, which share one.
OTHERS = "others"


class Residuals(NamedTuple):
    """What n runs were off by, beside what it depends on.

    off: (n,) logarithm of measured over predicted; known: (n,) variance by the measured spread.
    terms: (n, k), by which each of k variances counts.
    """

    off: Floats
    known: Floats
    terms: Floats

    def at(self, rows: Bools) -> "Residuals":
        return Residuals(self.off[rows], self.known[rows], self.terms[rows])


class CalibrationFit(NamedTuple):
    """A calibration, and each run beside its interval by a fit to all other fleets."""

    calibration: Calibration
    left_out: tuple[Interval, ...]


def calibrate(cases: Sequence[Case], today: datetime.date) -> CalibrationFit:
    """Fit the errors of time and power to the runs of these cases.

    Audits that judge one profile, of several strategies say, are of one fleet.
    Raises AuditError for fewer than FEWEST_FLEETS.
    """
    profiles: list[Profile] = []
    for case in cases:
        profiles += [] if case.profile in profiles else [case.profile]
    fleets = np.array([profiles.index(case.profile) for case in cases for _ in case.runs])
    if len(set(fleets)) < FEWEST_FLEETS:
        raise AuditError(
            f"--calibrate: give audits of {FEWEST_FLEETS} fleets or more, of which one is left out in turn"
        )
    units = [predict(_unit(case.costs), case.candidates, case.steps) for case in cases]
    kinds = _kinds(cases, units)
    of_time, of_power = zip(
        *(_residuals(case, unit, kinds) for case, unit in zip(cases, units, strict=True)), strict=True
    )
    time, power = _joined(of_time), _joined(of_power)
    variances, spread = _fit(time, fleets)
    stretch = _stretch(time, spread)
    stretches = np.empty(len(fleets))
    for fleet in set(fleets):
        others = fleets != fleet
        stretches[~others] = _stretch(time.at(others), spread[others])
    known = np.isfinite(power.off)
    watts = _fit(power.at(known), fleets[known])[0] if len(set(fleets[known])) >= FEWEST_FLEETS else np.zeros(1)
    clusters = np.concatenate([case.members.sum(axis=1) > 1 for case in cases])
    exchanges = np.array([case.exchange for case in cases for _ in case.runs])
    audited = Counter(exchanges[clusters].tolist())
    errors = stretch * np.sqrt(variances)
    of_kind = dict(zip(kinds, errors[2:].tolist(), strict=True))
    calibration = Calibration(
        schema=SCHEMA,
        step=float(errors[0]),
        run=float(errors[1]),
        exchanges=tuple(
            ExchangeError(kind, of_kind.get(kind, of_kind[OTHERS]), runs) for kind, runs in sorted(audited.items())
        ),
        watts=float(np.sqrt(watts[0])),
        fleets=len(set(fleets)),
        runs=len(fleets),
        emulated=any(run.emulated for case in cases for run in case.runs),
        date=today.isoformat(),
    )
    inside = np.abs(time.off) <= Z90 * np.sqrt(time.known + stretches**2 * spread)
    owners = [case for case in cases for _ in case.runs]
    return CalibrationFit(
        calibration,
        tuple(
            Interval(case.audit, case.model, case.exchange, not cluster, bool(held))
            for case, cluster, held in zip(owners, clusters, inside, strict=True)
        ),
    )


def _kinds(cases: Sequence[Case], units: Sequence[Predictions]) -> list[str]:
    """The kinds of exchange with an error of their own; all others share one."""
    told: Counter[str] = Counter()
    for case, unit in zip(cases, units, strict=True):
        told[case.exchange] += (unit.time_errors.exchange**2).sum()
    return [*sorted(kind for kind, exchanges in told.items() if exchanges >= FEWEST_EXCHANGES), OTHERS]


def _residuals(case: Case, unit: Predictions, kinds: Sequence[str]) -> tuple[Residuals, Residuals]:
    """Those of time, by steps, the run and each kind of exchange; those of power, by busy watts.

    unit: predicted by ``_unit`` costs. A calibration says nothing of watts from a fleet file, so
    that runs with such are not counted.
    """
    found = predict(case.costs, case.candidates, case.steps)
    exchange = np.zeros((len(case.runs), len(kinds)))
    exchange[:, kinds.index(case.exchange if case.exchange in kinds else OTHERS)] = unit.time_errors.exchange[:, 0] ** 2
    steps = (unit.time_errors.gradient**2).sum(axis=1)
    from_file = np.array([source.kind == NAMEPLATE for source in case.costs.power_sources])
    power_w = np.where((case.members & from_file).any(axis=1), np.nan, found.power_w)
    return (
        Residuals(
            np.log(case.measured.time_s) - np.log(found.time_s),
            found.time_errors.variance(),
            np.column_stack([steps, np.ones(len(case.runs)), exchange]),
        ),
        Residuals(
            np.log(case.measured.power_w) - np.log(power_w),
            found.power_errors.variance(),
            (unit.power_errors.busy_w**2).sum(axis=1)[:, None],
        ),
    )


def _unit(costs: Costs) -> Costs:
    """Costs in which each error that is fitted is 1, and any other 0."""
    none, one = np.zeros(len(costs.names)), np.ones(len(costs.names))
    errors = costs.devices.errors
    errors = type(errors)(**dict.fromkeys(errors._fields, none))._replace(gradient=one, busy_w=one)
    mates = costs.mates and costs.mates._replace(error=none)
    return costs._replace(
        devices=costs.devices._replace(errors=errors), model_errors=ModelErrors(1.0, 1.0), mates=mates
    )


def _joined(parts: Sequence[Residuals]) -> Residuals:
    return Residuals(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def _fit(of: Residuals, fleets: Ints) -> tuple[Floats, Floats]:
    """(k,) variances, and (n,) of runs beside what is known, by a fit to all other fleets."""
    spread = np.empty(len(of.off))
    for fleet in set(fleets):
        out = fleets == fleet
        spread[out] = of.at(out).terms @ _variances(of.at(~out))
    return _variances(of), spread


def _stretch(of: Residuals, spread: Floats) -> float:
    """By which errors are multiplied so that ``COVERED`` of these runs lie in their intervals.

    spread: (n,) variances of runs beside what is known.
    """
    beyond = np.maximum(0.0, (of.off / Z90) ** 2 - of.known)
    needed = np.sqrt(np.divide(beyond, spread, out=np.zeros_like(beyond), where=spread > 0))
    place = math.ceil(COVERED * (len(needed) + 1)) - 1  # for the next run, one more than there are
    return float(np.sort(needed)[min(place, len(needed) - 1)])


def _variances(of: Residuals) -> Floats:
    """(k,) variances, by weighed non-negative least squares."""
    found = np.zeros(of.terms.shape[1])
    spread = np.full(len(of.off), np.mean(of.off**2))
    for _ in range(WEIGHINGS):
        if not np.any(spread):
            break
        weight = 1 / np.maximum(spread, LEAST_VARIANCE * np.mean(spread))
        found, _residual = nnls(of.terms * weight[:, None], (of.off**2 - of.known) * weight)
        spread = of.known + of.terms @ found
    return found
