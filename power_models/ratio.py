"""A ratio predicts log(wanted / reference) of two runs of one job from pairs of runs of other jobs.

    ratio = share · law + extra-trees of what that leaves over

The law of watts is the step along the ``curve`` of the power limit, for the demand that the
reference shows. The law of times is linear in d and d², d = log(demand / watts). Further settings
count by the logarithm of their ratio; each term also counts times log(demand / greatest limit).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from power_models.base import GoneKind
from power_models.curve import Curve
from power_models.dataclass_json import Stored
from power_models.table import Floats, Ints, Table
from power_models.trees import Forest

OPTIONS = {"n_estimators": 100, "min_samples_leaf": 5, "max_features": 0.7, "random_state": 0}
#: Pairs learned from, at most.
MOST_PAIRS = 8_000
#: Penalty on the linear part's weights, for each pair.
PENALTY = 1e-4
#: Weight of a pair in the linear part, at least. Under a tight limit every demand draws the same
#: watts, so that a pair counts by how much its reference tells of the demand.
LEAST_WEIGHT = 0.02
#: Share of the law in times. Weights learned on one device are not those of another, so that the
#: trees have the other half. It was chosen on the four data sets of docs/power-models.md.
TIME_SHARE = 0.5


class Runs(NamedTuple):
    """Logarithms, one a run.

    limits: watts allowed.
    watts: watts drawn.
    settings: (runs, settings), what else is set.
    """

    limits: Floats
    watts: Floats
    settings: Floats

    @classmethod
    def of(cls, table: Table, limit: str, watts: str, settings: tuple[str, ...]) -> "Runs":
        """Raises ValueError for a column that is missing or not above zero."""
        used = table.only([limit, watts, *settings])
        for name in used.names:
            if not np.all(used.numbers(name) > 0):
                raise ValueError(f"{name}: a transfer needs numbers above zero")
        logs = [np.log(used.numbers(name)) for name in settings]
        stacked = np.column_stack(logs) if logs else np.zeros((table.rows, 0))
        return cls(np.log(used.numbers(limit)), np.log(used.numbers(watts)), stacked)

    def take(self, rows: Ints) -> "Runs":
        return Runs(*(each[rows] for each in self))


class Step(NamedTuple):
    """From a reference to a wanted run, one row a pair.

    known: the part of the law that needs no fit.
    linear, inputs: what the linear part of the law and the trees see.
    informative: how much the reference's watts tell of the demand, 0 to 1.
    """

    known: Floats
    linear: Floats
    inputs: Floats
    informative: Floats

    @classmethod
    def between(cls, reference: Runs, wanted: Runs, curve: Curve, top: float, of_watts: bool) -> "Step":
        """The wanted runs' watts are not looked at."""
        demand = curve.demands(reference.limits, reference.watts, np.arange(len(reference.limits)))
        before, after = (curve.watts(demand, runs.limits) for runs in (reference, wanted))
        near, limits = demand - top, wanted.limits - reference.limits
        ratios = (wanted.settings - reference.settings).T
        cut = [] if of_watts else [before - after, (demand - after) ** 2 - (demand - before) ** 2]
        terms = [*cut, *ratios]
        linear = [*terms, *(near * each for each in terms)]
        return cls(
            known=after - before if of_watts else np.zeros(len(demand)),
            linear=np.column_stack(linear) if linear else np.zeros((len(demand), 0)),
            inputs=np.column_stack([limits, demand - wanted.limits, demand - reference.limits, near, *ratios]),
            informative=curve.sensitivity(demand, reference.limits),
        )


@dataclass(frozen=True)
class Ratio(Stored):
    """A fitted log(wanted / reference) of one target.

    top: the greatest limit, a logarithm.
    of_watts: whether the target is the watts.
    weights: of the linear part of the law.
    share: of the law.
    """

    KEYS: ClassVar[Mapping[str, str]] = {"curve": "corner", "rest": "forest"}

    curve: Curve
    top: float
    of_watts: bool
    weights: Floats
    rest: Forest
    share: float

    @classmethod
    def fit(cls, runs: Runs, logs: Floats, jobs: Ints, of_watts: bool) -> "Ratio":
        """logs: of the target, (runs,); jobs: one number a run.

        Raises ValueError where no two runs are of one job.
        """
        series = np.unique(np.column_stack([jobs, runs.settings]), axis=0, return_inverse=True)[1].reshape(-1)
        curve, top = Curve.fit(runs.limits, runs.watts, series), float(runs.limits.max())
        first, second = pairs(jobs, MOST_PAIRS)
        if not len(first):
            raise ValueError("no two runs are of one job: there is nothing to learn a transfer from")
        step = Step.between(runs.take(first), runs.take(second), curve, top, of_watts)
        ratios, share = logs[second] - logs[first], 1.0 if of_watts else TIME_SHARE
        weights = _linear_weights(step, ratios - step.known)
        rest = Forest.fit(step.inputs, ratios - share * (step.known + step.linear @ weights), OPTIONS)
        return cls(curve, top, of_watts, weights, rest, share)

    def step(self, reference: Runs, wanted: Runs) -> Step:
        """What ``predict`` takes, pair by pair."""
        return Step.between(reference, wanted, self.curve, self.top, self.of_watts)

    def predict(self, step: Step) -> Floats:
        """log(wanted / reference) of each pair."""
        law = step.known + step.linear @ self.weights
        return np.asarray(self.share * law + self.rest.mean(step.inputs), dtype=np.float64)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Files of the first version hold the whole law and no share.

        Raises GoneKind for those of the second, a mean of two predictors.
        """
        if "plain" in data:
            raise GoneKind("a transfer of two predictors, which this version no longer reads; fit it again")
        return super().from_json({"share": 1.0, **data})


def pairs(jobs: Ints, most: int | None = None) -> tuple[Ints, Ints]:
    """Rows of every two different runs of the same job, in both directions.

    Where there are more than ``most``, a fixed sample.
    """
    first, second = np.nonzero((jobs[:, None] == jobs[None, :]) & ~np.eye(len(jobs), dtype=bool))
    if most is not None and len(first) > most:
        chosen = np.sort(np.random.default_rng(0).permutation(len(first))[:most])
        first, second = first[chosen], second[chosen]
    return first, second


def _linear_weights(step: Step, goal: Floats) -> Floats:
    """Weighted least squares with a small penalty."""
    weighted = step.linear * np.maximum(step.informative, LEAST_WEIGHT)[:, None]
    gram = weighted.T @ step.linear + PENALTY * len(goal) * np.eye(step.linear.shape[1])
    return np.asarray(np.linalg.solve(gram, weighted.T @ goal), dtype=np.float64)
