"""The scoreboard scores the planner and the baselines on all measurements of audits."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

import numpy as np

from planner.audit.scoring.baselines import PLANNER, RULES, Choice, FittedFactors, fit, recommended
from planner.audit.scoring.cases import Case, Estimates, Key, cases_of
from planner.audit.scoring.comparison import QUANTITIES, Comparison, compare, estimates, without_drift
from planner.audit.scoring.coverage import Interval, coverage, intervals
from planner.audit.scoring.measured import Extrapolation, MeasuredAudit
from planner.audit.scoring.repeatability import Repeatability, from_other_repetitions, repeatability
from planner.audit.scoring.selections import Hits, Selection, Spread, Summary, measurement_errors, select, summarise
from planner.errors import AuditError
from planner.plan.rank import METRICS
from planner.plan.recommend import recommend
from planner.plan.request import RecommendRequest
from planner.predict.calibration import Calibration
from planner.profile.file import Profile
from planner.provenance import COUNTER, SENSOR

#: Figures that the paper reports of its own choices, and where.
SOURCE = "Gu et al.: 3 devices, 5 models, 1000/100/10 Mbit/s, 4 metrics, 4 repetitions, 7 configurations"


class Reported(NamedTuple):
    """The paper's figures as shares of 1; step errors range over models, power over devices."""

    selections: int
    best: float
    first_two: float
    step_error: tuple[float, float]
    power_error: tuple[float, float]
    overhead: tuple[float, float]


REPORTED = Reported(240, 0.7667, 0.9583, (0.0098, 0.1601), (0.0117, 0.022), (0.0069, 0.1509))
#: Share of best choices, and error of a step of a device alone, by model.
BEST = {"alexnet": 0.75, "cifar10": 0.875, "nin": 0.75, "resnet": 0.7083, "squeezenet": 0.75}
STEP_ERROR = {"alexnet": 0.0098, "cifar10": 0.0334, "nin": 0.1601, "resnet": 0.0113, "squeezenet": 0.0388}


#: Groups by which selections and errors are broken down.
GROUPS = ("model", "audit", "metric")
ERROR_GROUPS = ("model", "audit")

#: References, not rules, because they use the runs themselves: the planner's choice without the
#: drift of the machine since the profile, and the choice by the other repetitions of the same runs.
WITHOUT_DRIFT = f"{PLANNER}, no drift"
MEASURED_BEFORE = "measured before"


class RuleScore(NamedTuple):
    """The selections of one rule.

    errors: of its predictions of clusters, by metric; None if it predicts none.
    """

    selections: tuple[Selection, ...]
    errors: dict[str, Spread | None]

    @property
    def summary(self) -> Summary | None:
        return summarise(self.selections)


class Errors(NamedTuple):
    """Errors of one quantity over configurations, as predicted and with drift removed."""

    raw: Spread | None
    steady: Spread | None


class Overhead(NamedTuple):
    """Seconds of profiling one model, and the predicted time of its fastest cluster."""

    model: str
    profiling_s: float
    training_s: float
    workers: int

    @property
    def share(self) -> float:
        return self.profiling_s / self.training_s


class Scoreboard(NamedTuple):
    """The scores of all audits.

    A repetition with a missing run has no selections, because the missing run may be the best.
    steps: by audit, number to which runs are extrapolated.
    rules: by name, the planner first, the references last.
    single: errors of single runs, by the prediction and by the other repetitions.
    fitted, extrapolations, overheads: by audit.
    missing: by audit, the number of runs that were not made.
    intervals: of single runs; left_out: the same by a calibration to all other fleets.
    """

    steps: dict[str, int]
    configurations: tuple[Comparison, ...]
    rules: dict[str, RuleScore]
    single: Repeatability
    fitted: dict[str, FittedFactors]
    extrapolations: dict[str, tuple[Extrapolation, ...]]
    overheads: dict[str, tuple[Overhead, ...]]
    missing: dict[str, int]
    intervals: tuple[Interval, ...] = ()
    left_out: tuple[Interval, ...] = ()

    @property
    def planner(self) -> RuleScore:
        return self.rules[PLANNER]

    @property
    def emulated(self) -> bool:
        return any(each.emulated for each in self.configurations)

    @property
    def power_scored_against(self) -> str:
        """What measured the watts."""
        if self.emulated:
            return "an emulation of its form"
        kinds = {part.provenance.kind for each in self.configurations for part in each.workers.values()}
        return "sensors" if kinds <= {COUNTER, SENSOR} else "its own form"

    def errors(self, alone: bool, **where: str) -> dict[str, Errors]:
        """Errors by QUANTITIES, of devices alone or of clusters.

        where: restricts to one model or one audit.
        """
        chosen = [
            each.figures
            for each in self.configurations
            if each.alone == alone and all(getattr(each, group) == name for group, name in where.items())
        ]
        return {
            quantity: Errors(
                Spread.of(figures[quantity].error for figures in chosen),
                Spread.of(figures[quantity].steady_error for figures in chosen),
            )
            for quantity in QUANTITIES
        }

    def coverage(self, alone: bool, **where: str) -> Hits | None:
        """Runs whose time is inside of its 90 % interval, of devices alone or of clusters."""
        return coverage(self.intervals, alone, **where)

    def left_out_coverage(self, alone: bool, **where: str) -> Hits | None:
        """The same where each fleet's intervals were calibrated on the others; None without."""
        return coverage(self.left_out, alone, **where)

    @property
    def exchanges(self) -> tuple[str, ...]:
        """The kinds of exchange of clusters."""
        return tuple(sorted({each.exchange for each in self.intervals if not each.alone}))

    def worst_run(self, alone: bool) -> float | None:
        """The largest error of the time of a single run."""
        return max((each.worst_error for each in self.configurations if each.alone == alone), key=abs, default=None)

    def extrapolated(self) -> Spread | None:
        return Spread.of(each.error for found in self.extrapolations.values() for each in found)

    def breakdown(self, group: str) -> dict[str, Summary]:
        """The planner's selections by one of GROUPS, names as they first occur."""
        selections: dict[str, list[Selection]] = defaultdict(list)
        for each in self.planner.selections:
            selections[getattr(each, group)].append(each)
        return {name: made for name, chosen in selections.items() if (made := summarise(chosen)) is not None}

    def names(self, group: str) -> list[str]:
        """The models, or the audits, in the order in which they first occur."""
        return list(dict.fromkeys(getattr(each, group) for each in self.configurations))


def score(audits: Sequence[MeasuredAudit], calibration: Calibration | None = None) -> Scoreboard:
    """Score all measurements.

    calibration: of the predicted intervals; None for those of the measured spread alone.
    Raises AuditError or PlanError where runs do not fit their profile.
    """
    _check(audits)
    by_audit = {audit.label: cases_of(audit) for audit in audits}
    cases = [case for each in by_audit.values() for case in each]
    fitted = {label: fit(each) for label, each in by_audit.items()}
    predicted, repeated = [recommended(case, FittedFactors()) for case in cases], from_other_repetitions(cases)
    choices: dict[str, Sequence[Choice]] = {
        name: predicted if name == PLANNER else [rule(case, fitted[case.audit]) for case in cases]
        for name, rule in RULES.items()
    }
    driftless = [without_drift(case) for case in cases]
    choices |= {WITHOUT_DRIFT: [estimates(each) for each in driftless], MEASURED_BEFORE: repeated}
    incomplete = {(audit.label, model, repetition) for audit in audits for model, repetition in audit.missing}
    return Scoreboard(
        steps={audit.label: audit.steps for audit in audits},
        configurations=compare(cases, driftless),
        rules=_rule_scores(cases, choices, incomplete),
        single=repeatability(cases, predicted, repeated),
        fitted=fitted,
        extrapolations={audit.label: audit.extrapolations for audit in audits},
        overheads={audit.label: _overheads(audit) for audit in audits},
        missing={audit.label: len(audit.missing) for audit in audits},
        intervals=intervals(cases, calibration),
    )


def overheads(
    profile: Profile, steps: int, framework: str | None = None, batch: int | None = None, models: Sequence[str] = ()
) -> tuple[Overhead, ...]:
    """The overhead of each model, or of those in ``models``.

    Each model counts its own steps in every framework, and its share of the measurements of links
    and idle power, which are made once for all models.
    """
    every = sorted({step.model for device in profile.devices.values() for step in device.steps})
    common_s = profile.longest_s(lambda device: device.took_s.get("idle", 0.0)) + sum(profile.took_s.values())

    def of(model: str) -> Overhead:
        own_s = profile.longest_s(lambda device: device.timing_s(model))
        best = recommend(profile, RecommendRequest({"time": 1.0}, model, framework, steps, batch)).row(1)
        return Overhead(model, own_s + common_s / len(every), best.prediction.time_s, len(best.config.workers))

    return tuple(of(model) for model in models or every)


def _rule_scores(
    cases: Sequence[Case], choices: Mapping[str, Sequence[Choice]], incomplete: set[tuple[str, str, int]]
) -> dict[str, RuleScore]:
    errors = measurement_errors(cases)
    scores = {}
    for name, chosen in choices.items():
        selections = (
            select(case, choice, metric, by_metric[metric])
            for case, choice, by_metric in zip(cases, chosen, errors, strict=True)
            if (case.audit, case.model, case.repetition) not in incomplete
            for metric in METRICS
        )
        # Medians of this reference over repetitions would cancel: see ``repeatability``.
        cancels = name == MEASURED_BEFORE
        spreads = {metric: None if cancels else Spread.of(_errors(cases, chosen, metric)) for metric in METRICS}
        scores[name] = RuleScore(tuple(each for each in selections if each is not None), spreads)
    return scores


def _errors(cases: Sequence[Case], choices: Sequence[Choice], metric: str) -> Iterable[float]:
    """Error of every cluster, the median over its repetitions."""
    by_key: dict[Key, list[float]] = defaultdict(list)
    for case, choice in zip(cases, choices, strict=True):
        if isinstance(choice, Estimates):
            errors = np.expm1(choice.log(metric) - case.measured.log(metric))
            for key, error in zip(case.keys, errors.tolist(), strict=True):
                if len(key[2].workers) > 1 and np.isfinite(error):
                    by_key[key].append(error)
    return (median(each) for each in by_key.values())


def _overheads(audit: MeasuredAudit) -> tuple[Overhead, ...]:
    models = sorted({run.model for run in audit.measured})
    return overheads(audit.profile, audit.steps, audit.framework, audit.batch, models)


def _check(audits: Sequence[MeasuredAudit]) -> None:
    for audit in audits:
        if not audit.measured:
            raise AuditError(f"{audit.label}: nothing was measured yet; run `planner audit` on its fleet first")
    label, count = Counter(audit.label for audit in audits).most_common(1)[0]
    if count > 1:
        raise AuditError(f"{count} audits have the label {label}; give each its own with --label")
