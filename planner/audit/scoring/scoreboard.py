"""What Gu et al. report of their own choice, to stand beside ours (as their evaluation sums it up)."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from statistics import median
from typing import NamedTuple

import numpy as np

from planner.audit.scoring.baselines import OURS, RULES, Choice, FittedFactors, fit, planner
from planner.audit.scoring.cases import Case, Estimates, Key, contests
from planner.audit.scoring.comparison import QUANTITIES, Comparison, judge, undrifted
from planner.audit.scoring.measured import Extrapolation, MeasuredAudit
from planner.audit.scoring.repeatability import NAME as MEASURED_BEFORE
from planner.audit.scoring.repeatability import Repeatability, elsewhere, foretold
from planner.audit.scoring.selections import Selection, measurement_errors, select
from planner.audit.scoring.summaries import Spread, Summary, broken_down, tally
from planner.errors import AuditError
from planner.plan.rank import METRICS
from planner.plan.recommend import recommend
from planner.plan.request import RecommendRequest
from planner.profile.file import Profile

SOURCE = "Gu et al.: 3 devices, 5 models, 1000/100/10 Mbit/s, 4 metrics, 4 repetitions, 7 configurations"


class Reported(NamedTuple):
    """Shares of 1; ranges over models, of power over devices."""

    selections: int
    best: float
    first_two: float
    step_error: tuple[float, float]
    power_error: tuple[float, float]
    overhead: tuple[float, float]


REPORTED = Reported(240, 0.7667, 0.9583, (0.0098, 0.1601), (0.0117, 0.022), (0.0069, 0.1509))


#: Best chosen, and the error of a step alone, by model.
BEST = {"alexnet": 0.75, "cifar10": 0.875, "nin": 0.75, "resnet": 0.7083, "squeezenet": 0.75}


STEP_ERROR = {"alexnet": 0.0098, "cifar10": 0.0334, "nin": 0.1601, "resnet": 0.0113, "squeezenet": 0.0388}


class Overhead(NamedTuple):
    """Seconds profiling took for one model, beside the predicted time of its fastest cluster."""

    model: str
    profiling_s: float
    training_s: float
    workers: int

    @property
    def share(self) -> float:
        """Of the training."""
        return self.profiling_s / self.training_s


def overheads(
    profile: Profile, steps: int, framework: str | None = None, batch: int | None = None, models: Sequence[str] = ()
) -> tuple[Overhead, ...]:
    """Of each model, or of those in ``models``: what its own steps took, in every framework, and its part of the links
    and the idle power, which are measured once for all that were profiled."""
    every = sorted({step.model for device in profile.devices.values() for step in device.steps})
    common_s = profile.longest_s(lambda device: device.took_s.get("idle", 0.0)) + sum(profile.took_s.values())

    def of(model: str) -> Overhead:
        own_s = profile.longest_s(lambda device: device.timing_s(model))
        best = recommend(profile, RecommendRequest({"time": 1.0}, model, framework, steps, batch)).row(1)
        return Overhead(model, own_s + common_s / len(every), best.prediction.time_s, len(best.config.workers))

    return tuple(of(model) for model in models or every)


#: By what selections are broken down, and by what errors.
GROUPS = ("model", "audit", "metric")


ERROR_GROUPS = ("model", "audit")


#: Not a rule, for it knows what the runs were like: the planner's choice had the machine not drifted since the profile.
UNDRIFTED = f"{OURS}, no drift"


class Rated(NamedTuple):
    """One rule. errors: of its predictions of clusters of several, by metric, None where it predicts none."""

    selections: tuple[Selection, ...]
    errors: dict[str, Spread | None]

    @property
    def tally(self) -> Summary | None:
        """All its selections."""
        return tally(self.selections)


class Errors(NamedTuple):
    """Errors of one quantity over configurations, as predicted and with the machine's drift removed."""

    raw: Spread | None
    steady: Spread | None


class Scoreboard(NamedTuple):
    """rules: by name, ours first, last the references that know of the runs; single: what single runs are off by,
    beside how unlike one another repetitions are; tuned, extrapolations, overheads: by audit; missing: how many runs
    were not made.

    Nothing is chosen in a repetition of which a run is missing: the best one may be the one that is not there.
    """

    steps: dict[str, int]
    configurations: tuple[Comparison, ...]
    rules: dict[str, Rated]
    single: Repeatability
    tuned: dict[str, FittedFactors]
    extrapolations: dict[str, tuple[Extrapolation, ...]]
    overheads: dict[str, tuple[Overhead, ...]]
    missing: dict[str, int]

    @property
    def ours(self) -> Rated:
        """What the planner chose."""
        return self.rules[OURS]

    @property
    def emulated(self) -> bool:
        """Whether any of the watts are an emulated device's."""
        return any(each.emulated for each in self.configurations)

    def errors(self, alone: bool, **where: str) -> dict[str, Errors]:
        """By QUANTITIES, of devices alone or of clusters of several; ``where``: of one model, or one audit, only."""
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

    def worst_run(self, alone: bool) -> float | None:
        """The largest error of the time of a single run, whatever its repetitions say."""
        return max((each.worst_error for each in self.configurations if each.alone == alone), key=abs, default=None)

    def extrapolated(self) -> Spread | None:
        """How far the extrapolation of short runs is off."""
        return Spread.of(each.error for found in self.extrapolations.values() for each in found)

    def breakdown(self, group: str) -> dict[str, Summary]:
        """Our selections by one of GROUPS."""
        return broken_down(self.ours.selections, attrgetter(group))

    def names(self, group: str) -> list[str]:
        """The models, or the audits, in the order in which they first occur."""
        return list(dict.fromkeys(getattr(each, group) for each in self.configurations))


def score(audits: Sequence[MeasuredAudit]) -> Scoreboard:
    """Judge everything that was measured. Raises AuditError or PlanError where it does not fit the profiles."""
    _check(audits)
    held = {audit.label: contests(audit) for audit in audits}
    everything = [contest for each in held.values() for contest in each]
    tuned = {label: fit(each) for label, each in held.items()}
    noise = measurement_errors(everything)
    parts = {(audit.label, *each) for audit in audits for each in audit.missing}
    whole = [(contest.audit, contest.model, contest.repetition) not in parts for contest in everything]
    ours, before = [planner(each, tuned[each.audit]) for each in everything], elsewhere(everything)
    guesses: dict[str, Sequence[Choice]] = {
        name: ours if name == OURS else [rule(each, tuned[each.audit]) for each in everything]
        for name, rule in RULES.items()
    }
    guesses[UNDRIFTED] = [undrifted(each) for each in everything]
    guesses[MEASURED_BEFORE] = before
    rules = {name: _rated(everything, each, noise, whole) for name, each in guesses.items()}
    # Over repetitions they would vanish: see foretold.
    rules[MEASURED_BEFORE] = rules[MEASURED_BEFORE]._replace(errors=dict.fromkeys(METRICS))
    return Scoreboard(
        steps={audit.label: audit.steps for audit in audits},
        configurations=judge(everything),
        rules=rules,
        single=foretold(everything, ours, before),
        tuned=tuned,
        extrapolations={audit.label: audit.extrapolations for audit in audits},
        overheads={audit.label: _overheads(audit) for audit in audits},
        missing={audit.label: len(audit.missing) for audit in audits},
    )


def _rated(
    everything: Sequence[Case],
    guesses: Sequence[Choice],
    noise: Sequence[Mapping[str, np.ndarray]],
    whole: Sequence[bool],
) -> Rated:
    judged = (
        select(contest, guess, metric, errors[metric])
        for contest, guess, errors, all_there in zip(everything, guesses, noise, whole, strict=True)
        if all_there
        for metric in METRICS
    )
    return Rated(
        tuple(each for each in judged if each is not None),
        {metric: Spread.of(_errors(everything, guesses, metric)) for metric in METRICS},
    )


def _errors(everything: Sequence[Case], guesses: Sequence[Choice], metric: str) -> Iterable[float]:
    """Of every cluster of several, the median over its repetitions."""
    found: dict[Key, list[float]] = defaultdict(list)
    for contest, guess in zip(everything, guesses, strict=True):
        if isinstance(guess, Estimates):
            errors = np.expm1(guess.log(metric) - contest.measured.log(metric))
            for key, error in zip(contest.keys, errors.tolist(), strict=True):
                if len(key[2].workers) > 1 and np.isfinite(error):
                    found[key].append(error)
    return (median(each) for each in found.values())


def _overheads(audit: MeasuredAudit) -> tuple[Overhead, ...]:
    models = sorted({run.model for run in audit.measured})
    return overheads(audit.profile, audit.steps, audit.framework, audit.batch, models)


def _check(audits: Sequence[MeasuredAudit]) -> None:
    for audit in audits:
        if not audit.measured:
            raise AuditError(f"{audit.label}: nothing was measured yet; run `planner audit` on its fleet first")
    label, count = Counter(audit.label for audit in audits).most_common(1)[0]
    if count > 1:
        raise AuditError(f"{count} audits are called {label}; give each a name of its own")
