"""A selection is one choice among the measured configurations; summaries reduce many to figures."""

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Self

import numpy as np

from planner.arrays import Floats, Ints
from planner.audit.scoring.baselines import Choice
from planner.audit.scoring.cases import Case, Key
from planner.plan.rank import METRICS
from planner.predict.clusters import ClusterConfig
from profilers.stats import Z95

#: Logarithms closer than this count as equal, because they differ only by rounding.
LOG_TOLERANCE = 1e-12


class Selection(NamedTuple):
    """A configuration chosen by one metric among ``among`` measured ones.

    best: the configuration measured best.
    hit: whether the chosen one is the best one.
    hit_tied: also true if measurements cannot distinguish the two.
    first_two: whether the best one is among the first two predicted; None if only one is named.
    first_two_tied: the same with ties.
    regret: by which share the chosen one's metric exceeds the best one's, as measured.
    tau: Kendall's rank correlation of predicted and measured order; None without an order.
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


class Hits(NamedTuple):
    """The number of selections that hit, and the number of all."""

    hits: int
    of: int

    @property
    def share(self) -> float:
        return self.hits / self.of

    def __str__(self) -> str:
        return f"{self.hits} of {self.of}"

    @classmethod
    def among(cls, values: Iterable[bool | None]) -> Self | None:
        """The true values among the known ones; None where none is known."""
        known = [value for value in values if value is not None]
        return cls(sum(known), len(known)) if known else None


class Summary(NamedTuple):
    """Selections of one kind; fields as in Selection, None where unknown.

    worst: the selection with the largest regret
    """

    best: Hits
    best_tied: Hits
    first_two: Hits | None
    first_two_tied: Hits | None
    mean_regret: float
    median_regret: float
    worst: Selection
    mean_tau: float | None


class Spread(NamedTuple):
    """Distribution of errors, as shares."""

    number: int
    mean_abs: float
    worst_abs: float
    median: float
    least: float
    greatest: float

    @classmethod
    def of(cls, errors: Iterable[float | None]) -> Self | None:
        """The distribution of the known errors; None where there are none."""
        known = sorted(error for error in errors if error is not None)
        if not known:
            return None
        sizes = [abs(error) for error in known]
        return cls(len(known), statistics.fmean(sizes), max(sizes), statistics.median(known), known[0], known[-1])


def select(case: Case, choice: Choice, metric: str, errors: Floats) -> Selection | None:
    """Score one choice among the configurations whose metric is known.

    errors: (C,), from ``measurement_errors``.
    Returns None where fewer than two configurations remain, or the chosen one is not among them.
    """
    value = case.measured.log(metric)
    predicted = None if isinstance(choice, int) else choice.log(metric)
    known = np.flatnonzero(np.isfinite(value if predicted is None else value + predicted))
    order = [choice] if isinstance(choice, int) else _order(known, choice.log(metric))
    if known.size < 2 or order[0] not in known:
        return None
    best = int(known[np.argmin(value[known])])
    behind = value - value[best]
    tied = behind <= np.maximum(LOG_TOLERANCE, Z95 * np.hypot(errors, errors[best]))
    ordered = predicted is not None
    return Selection(
        case.audit, case.model, metric, case.repetition, int(known.size),
        best=case.configs[best],
        chosen=case.configs[order[0]],
        hit=bool(behind[order[0]] <= LOG_TOLERANCE),
        hit_tied=bool(tied[order[0]]),
        first_two=bool((behind[order[:2]] <= LOG_TOLERANCE).any()) if ordered else None,
        first_two_tied=bool(tied[order[:2]].any()) if ordered else None,
        regret=max(0.0, math.expm1(behind[order[0]])),
        tau=None if predicted is None else _kendall(predicted[known], value[known]),
        emulated=any(run.emulated for run in case.runs),
    )  # fmt: skip


def measurement_errors(cases: Sequence[Case]) -> list[dict[str, Floats]]:
    """By case and metric, (C,): the standard error of the logarithm of the measured value.

    With repetitions it is the standard deviation between them, pooled over the configurations of a
    fleet and model. Without, it is the standard error within the run.
    """
    by_case: list[dict[str, Floats]] = [{} for _ in cases]
    for metric in METRICS:
        logs: dict[tuple[str, str], list[dict[Key, float]]] = defaultdict(list)
        for case in cases:
            of_case = zip(case.keys, case.measured.log(metric).tolist(), strict=True)
            logs[case.audit, case.model].append(dict(of_case))
        between = {of: _deviation(rows) for of, rows in logs.items()}
        for case, errors in zip(cases, by_case, strict=True):
            repeated = between[case.audit, case.model]
            errors[metric] = _within(case, metric) if repeated is None else np.full(len(case.runs), repeated)
    return by_case


def summarise(selections: Sequence[Selection]) -> Summary | None:
    """The figures of all selections; None where there are none."""
    if not selections:
        return None
    regrets = [each.regret for each in selections]
    taus = [each.tau for each in selections if each.tau is not None]
    return Summary(
        best=Hits(sum(each.hit for each in selections), len(selections)),
        best_tied=Hits(sum(each.hit_tied for each in selections), len(selections)),
        first_two=Hits.among(each.first_two for each in selections),
        first_two_tied=Hits.among(each.first_two_tied for each in selections),
        mean_regret=statistics.fmean(regrets),
        median_regret=statistics.median(regrets),
        worst=max(selections, key=lambda each: each.regret),
        mean_tau=statistics.fmean(taus) if taus else None,
    )


def _within(case: Case, metric: str) -> Floats:
    time, power = METRICS[metric]
    return np.array([math.hypot(time * run.rate_error, power * run.power_error) for run in case.runs])


def _deviation(rows: Sequence[Mapping[Key, float]]) -> float | None:
    """Standard deviation over configurations in every repetition; None without two of both.

    An offset of a whole repetition is removed, because it does not affect comparisons within it.
    The remaining variance of R repetitions of C configurations has (R - 1) (C - 1) degrees of
    freedom.
    """
    keys = [key for key in rows[0] if all(math.isfinite(row.get(key, math.nan)) for row in rows)]
    if len(rows) < 2 or len(keys) < 2:
        return None
    table = np.array([[row[key] for key in keys] for row in rows])
    residuals = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
    return math.sqrt(float((residuals**2).sum()) / ((len(rows) - 1) * (len(keys) - 1)))


def _order(known: Ints, predicted: Floats) -> list[int]:
    """Best first; ties go to the smaller cluster, then to the one with the faster server."""
    order: list[int] = known[np.argsort(np.round(predicted[known], 12), kind="stable")].tolist()
    return order


def _kendall(predicted: Floats, measured: Floats) -> float | None:
    from scipy.stats import kendalltau

    tau = float(kendalltau(np.round(predicted, 12), np.round(measured, 12)).statistic)
    return None if math.isnan(tau) else tau
