"""One choice among the measured configurations, and how good it was."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from planner.arrays import Floats, Ints
from planner.audit.scoring.baselines import Choice
from planner.audit.scoring.cases import Case, Key
from planner.plan.rank import METRICS
from planner.predict.clusters import ClusterConfig
from profilers.stats import Z95

#: Logarithms closer than this are equal: rounding is no reason to lose.
SAME = 1e-12


class Selection(NamedTuple):
    """A configuration chosen by one metric among ``among`` measured ones.

    best: as measured; hit: the chosen one is it, or with ``_tied`` cannot be told from it by the measurements;
    first_two: it is among the first two of the predicted order, None where only one is named; regret: how much more
    of the metric the chosen one measured than the best, as a share; tau: Kendall's, of predicted and measured
    order, None where there is no order.
    """

    audit: str
    model: str
    metric: str
    repetition: int
    among: int
    best: ClusterConfig
    chosen: ClusterConfig
    hit: bool
    hit_tied: bool
    first_two: bool | None
    first_two_tied: bool | None
    regret: float
    tau: float | None
    emulated: bool


def select(contest: Case, guess: Choice, metric: str, errors: Floats) -> Selection | None:
    """Judge one choice among the configurations whose metric is known.

    errors: (C,), as of ``measurement_errors``. None where fewer than two configurations are left to choose among,
    or the one to take is not among them.
    """
    value = contest.measured.log(metric)
    predicted = None if isinstance(guess, int) else guess.log(metric)
    known = np.flatnonzero(np.isfinite(value if predicted is None else value + predicted))
    order = [guess] if isinstance(guess, int) else _order(known, guess.log(metric))
    if known.size < 2 or order[0] not in known:
        return None
    best = int(known[np.argmin(value[known])])
    behind = value - value[best]
    tied = behind <= np.maximum(SAME, Z95 * np.hypot(errors, errors[best]))
    several = predicted is not None
    return Selection(
        audit=contest.audit,
        model=contest.model,
        metric=metric,
        repetition=contest.repetition,
        among=int(known.size),
        best=contest.configs[best],
        chosen=contest.configs[order[0]],
        hit=bool(behind[order[0]] <= SAME),
        hit_tied=bool(tied[order[0]]),
        first_two=bool((behind[order[:2]] <= SAME).any()) if several else None,
        first_two_tied=bool(tied[order[:2]].any()) if several else None,
        regret=max(0.0, math.expm1(behind[order[0]])),
        tau=None if predicted is None else _kendall(predicted[known], value[known]),
        emulated=any(run.emulated for run in contest.runs),
    )


def measurement_errors(contests: Sequence[Case]) -> list[dict[str, Floats]]:
    """By contest and metric, (C,): the standard error of the logarithm of what was measured.

    The standard deviation between repetitions, of all configurations of a fleet and model together, where there are
    several; else what the run shows within itself.
    """
    measured = [contest.measured for contest in contests]
    found: list[dict[str, Floats]] = [{} for _ in contests]
    for metric in METRICS:
        logs = [each.log(metric) for each in measured]
        between = _between_repetitions(contests, logs)
        for contest, errors in zip(contests, found, strict=True):
            repeated = between.get((contest.audit, contest.model))
            within = _within(contest, metric)
            errors[metric] = within if repeated is None else np.full_like(within, repeated)
    return found


def _within(contest: Case, metric: str) -> Floats:
    time, power = METRICS[metric]
    return np.array([math.hypot(time * run.rate_error, power * run.power_error) for run in contest.runs])


def _between_repetitions(contests: Sequence[Case], logs: Sequence[Floats]) -> dict[tuple[str, str], float]:
    """By audit and model. What a whole repetition is off by counts for nothing: it decides no comparison within one.

    The variance of what is left of R repetitions of C configurations has (R - 1) (C - 1) degrees of freedom.
    """
    tables: dict[tuple[str, str], list[dict[Key, float]]] = defaultdict(list)
    for contest, of_contest in zip(contests, logs, strict=True):
        tables[contest.audit, contest.model].append(dict(zip(contest.keys, of_contest.tolist(), strict=True)))
    return {of: error for of, rows in tables.items() if (error := _scatter(rows)) is not None}


def _scatter(rows: Sequence[Mapping[Key, float]]) -> float | None:
    """The standard deviation, over configurations that every repetition has; None without two of both."""
    keys = [key for key in rows[0] if all(math.isfinite(row.get(key, math.nan)) for row in rows)]
    if len(rows) < 2 or len(keys) < 2:
        return None
    table = np.array([[row[key] for key in keys] for row in rows])
    left = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
    return math.sqrt(float((left**2).sum()) / ((len(rows) - 1) * (len(keys) - 1)))


def _order(known: Ints, predicted: Floats) -> list[int]:
    """Best first; of equal ones the smaller cluster, then the one with the faster server."""
    order: list[int] = known[np.argsort(np.round(predicted[known], 12), kind="stable")].tolist()
    return order


def _kendall(predicted: Floats, measured: Floats) -> float | None:
    from scipy.stats import kendalltau

    tau = float(kendalltau(np.round(predicted, 12), np.round(measured, 12)).statistic)
    return None if math.isnan(tau) else tau
