"""Predictions of recorded clusters are scored against what was measured. Pure."""

import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from backends.training.run_settings import RunSettings
from benchmarks.recorded import Audit, Fleet
from planner.arrays import Bools, Floats
from planner.plan.texts import parse_engine, parse_strategy
from planner.predict.clusters import Candidates
from planner.predict.cycle import kind_of
from planner.predict.inputs import Inputs
from planner.predict.request import RecommendRequest
from planner.predict.run import predict
from planner.predict.training import prepare

#: Bytes of a model from which on its exchanges count as those of a network that people train.
LARGE = 200_000
#: Steps of the runs that are predicted: so many that how a run begins does not count.
STEPS = 10_000_000


class Case(NamedTuple):
    """The clusters of one fleet that trained by one strategy, C of N devices.

    kind: of the exchange. sizes: (C,) members of each. measured_s: (C,) median seconds of a step of
    all members together; repeated_s: those of each repetition.
    """

    fleet: str
    kind: str
    model_bytes: int
    inputs: Inputs
    candidates: Candidates
    sizes: Floats
    measured_s: Floats
    repeated_s: tuple[tuple[float, ...], ...]

    @property
    def alone(self) -> Bools:
        """(C,) whether it is a device alone."""
        return self.sizes == 1


class Score(NamedTuple):
    """Errors and regrets as shares of 1, clusters by the size of the model.

    large, small, alone: mean absolute errors of clusters, and of devices that train alone.
    regret: of the choice by time, the mean over cases; worst: the largest.
    best: share of cases whose choice is the fastest, or one that repetitions cannot tell from it.
    kinds: mean absolute error of clusters by kind of exchange.
    """

    large: float
    small: float
    alone: float
    regret: float
    worst: float
    best: float
    kinds: dict[str, float]


def cases(fleets: Iterable[Fleet]) -> list[Case]:
    """One for each audit."""
    return [_case(fleet, audit) for fleet in fleets for audit in fleet.audits]


def predicted_s(case: Case, inputs: Inputs | None = None) -> Floats:
    """(C,) seconds of a step of all members together. inputs: in place of the case's own."""
    return predict(case.inputs if inputs is None else inputs, case.candidates, STEPS).time_s / STEPS


def score(scored: Sequence[Case], predictions: Sequence[Floats]) -> Score:
    """predictions: by case, as of ``predicted_s``."""
    errors: dict[str, list[float]] = {"large": [], "small": [], "alone": []}
    kinds: dict[str, list[float]] = {}
    for case, step_s in zip(scored, predictions, strict=True):
        off = np.abs(step_s / case.measured_s - 1)
        errors["alone"] += off[case.alone].tolist()
        errors["large" if case.model_bytes >= LARGE else "small"] += off[~case.alone].tolist()
        kinds.setdefault(case.kind, []).extend(off[~case.alone].tolist())
    chosen = [int(np.argmin(step_s)) for step_s in predictions]
    regrets = [case.measured_s[at] / case.measured_s.min() - 1 for case, at in zip(scored, chosen, strict=True)]
    return Score(
        **{name: statistics.fmean(each) for name, each in errors.items()},
        regret=statistics.fmean(regrets),
        worst=max(regrets),
        best=statistics.fmean(_as_good_as_best(case, at) for case, at in zip(scored, chosen, strict=True)),
        kinds={kind: statistics.fmean(each) for kind, each in sorted(kinds.items()) if each},
    )


def _as_good_as_best(case: Case, chosen: int) -> bool:
    """Whether one of its repetitions was as fast as one of the fastest cluster's."""
    best = int(np.argmin(case.measured_s))
    return min(case.repeated_s[chosen]) <= max(case.repeated_s[best])


def _case(fleet: Fleet, audit: Audit) -> Case:
    settings = RunSettings(fleet.model, batch=audit.batch, strategy=parse_strategy(audit.strategy))
    request = RecommendRequest(settings=settings, allow_plaintext=True).by(parse_engine(audit.engine))
    inputs, _ = prepare(fleet.profile, request)
    number = {name: 1 << at for at, name in enumerate(inputs.names)}
    runs = audit.runs
    return Case(
        fleet=fleet.fleet,
        kind=kind_of(inputs.strategy, inputs.engine),
        model_bytes=fleet.model_bytes,
        inputs=inputs,
        candidates=Candidates(
            np.array([sum(number[name] for name in run.members) for run in runs]),
            np.array([inputs.names.index(run.host) for run in runs]),
        ),
        sizes=np.array([len(run.members) for run in runs]),
        measured_s=np.array([statistics.median(run.step_s) for run in runs]),
        repeated_s=tuple(tuple(run.step_s) for run in runs),
    )
