"""A ratio predicts log(wanted / reference) of two runs of one job from pairs of runs of other jobs.

Two predictors are averaged, because they err on different devices and workloads. The structured one
is a sum:

1. of watts, the step along the ``curve`` of the power limit, for the demand that the reference
   shows;
2. a linear part: times grow by d and d² with d = log(demand / watts); settings count by the
   logarithm of their ratio; each also counts times log(demand / greatest limit);
3. extra-trees of what is left over.

The plain one is extra-trees on logarithms of limits, watts and target, without the curve.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from power_models.curve import Curve
from power_models.stored import Stored
from power_models.table import Floats, Ints, Table
from power_models.trees import Forest

REST_OPTIONS = {"n_estimators": 100, "min_samples_leaf": 10, "max_features": 0.7, "random_state": 0}
PLAIN_OPTIONS = {"n_estimators": 100, "min_samples_leaf": 5, "random_state": 0}
#: Pairs learned from, at most.
MOST_PAIRS = 8_000
#: Penalty on the linear part's weights, for each pair.
PENALTY = 1e-4
#: Weight of a pair in the linear part, at least. Under a tight limit every demand draws the same
#: watts, so that a pair counts by how much its reference tells of the demand.
LEAST_WEIGHT = 0.02
#: The plain predictor's share before any data, and how much that counts beside the data.
USUAL_SHARE, SHARE_PRIOR = 0.5, 0.2


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
        return Runs(self.limits[rows], self.watts[rows], self.settings[rows])


class Step(NamedTuple):
    """From a reference to a wanted run, one row a pair.

    known: the part that needs no fit.
    linear, inputs: what the linear part and the trees see.
    informative: how much the reference's watts tell of the demand, 0 to 1.
    """

    known: Floats
    linear: Floats
    inputs: Floats
    informative: Floats


class Predicted(NamedTuple):
    """log(wanted / reference) by both predictors, and where each pair lies: (pairs, inputs)."""

    structured: Floats
    plain: Floats
    inputs: Floats

    def take(self, rows: Any) -> "Predicted":
        """These pairs."""
        return Predicted(self.structured[rows], self.plain[rows], self.inputs[rows])

    def mixed(self, share: float) -> Floats:
        """The mean, with this share for the plain predictor."""
        return (1 - share) * self.structured + share * self.plain

    def best_share(self, logs: Floats) -> float:
        """The share that errs least in squares (stacking: Breiman 1996), drawn to the usual one.

        logs: log(wanted / reference) as measured, of jobs that the predictors have not seen.
        """
        between = self.plain - self.structured
        prior = SHARE_PRIOR * float(((logs - self.mixed(USUAL_SHARE)) ** 2).sum())
        slope = float(between @ (logs - self.structured)) + prior * USUAL_SHARE
        size = float(between @ between) + prior
        return float(np.clip(slope / size, 0.0, 1.0)) if size else USUAL_SHARE


@dataclass(frozen=True)
class Ratio(Stored):
    """A fitted log(wanted / reference) of one target.

    top: the greatest limit, a logarithm.
    of_watts: whether the target is the watts.
    weights: of the linear part.
    rest: the trees of what the linear part leaves over.
    plain: the plain predictor, and ``share`` what it counts.
    """

    KEYS: ClassVar[Mapping[str, str]] = {"curve": "corner", "rest": "forest"}

    curve: Curve
    top: float
    of_watts: bool
    weights: Floats
    rest: Forest
    plain: Forest
    share: float = USUAL_SHARE

    @classmethod
    def fit(cls, runs: Runs, logs: Floats, jobs: Ints, of_watts: bool) -> "Ratio":
        """logs: of the target, (runs,); jobs: one number a run.

        Raises ValueError where no two runs are of one job.
        """
        from sklearn.ensemble import ExtraTreesRegressor

        series = np.unique(np.column_stack([jobs, runs.settings]), axis=0, return_inverse=True)[1].reshape(-1)
        curve, top = Curve.fit(runs.limits, runs.watts, series), float(runs.limits.max())
        first, second = pairs(jobs, MOST_PAIRS)
        if not len(first):
            raise ValueError("no two runs are of one job: there is nothing to learn a transfer from")
        reference, wanted, ratios = runs.take(first), runs.take(second), logs[second] - logs[first]
        step = _step(curve, top, of_watts, reference, wanted)
        left = ratios - step.known
        weights = _linear_weights(step, left)
        rest = ExtraTreesRegressor(**REST_OPTIONS).fit(step.inputs, left - step.linear @ weights)
        plain = ExtraTreesRegressor(**PLAIN_OPTIONS).fit(_plain_inputs(top, reference, wanted, logs[first]), ratios)
        return cls(curve, top, of_watts, weights, Forest.of(rest.estimators_), Forest.of(plain.estimators_))

    def predict(self, reference: Runs, wanted: Runs, logs: Floats) -> Predicted:
        """Pair by pair. logs: the reference's target. The wanted runs' watts are not looked at."""
        step = _step(self.curve, self.top, self.of_watts, reference, wanted)
        structured = step.known + step.linear @ self.weights + self.rest.mean(step.inputs)
        plain = self.plain.mean(_plain_inputs(self.top, reference, wanted, logs))
        return Predicted(np.asarray(structured, dtype=np.float64), plain, step.inputs)

    def sharing(self, share: float) -> "Ratio":
        """The same with another share."""
        return replace(self, share=share)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Files of former versions hold no plain predictor: its share is 0 then."""
        return super().from_json({"plain": Forest.constant(0.0).to_json(), "share": 0.0, **data})


def pairs(jobs: Ints, most: int | None = None) -> tuple[Ints, Ints]:
    """Rows of every two different runs of the same job, in both directions.

    Where there are more than ``most``, a fixed sample.
    """
    first, second = np.nonzero((jobs[:, None] == jobs[None, :]) & ~np.eye(len(jobs), dtype=bool))
    if most is not None and len(first) > most:
        chosen = np.sort(np.random.default_rng(0).permutation(len(first))[:most])
        first, second = first[chosen], second[chosen]
    return first, second


def _step(curve: Curve, top: float, of_watts: bool, reference: Runs, wanted: Runs) -> Step:
    demand = curve.demands(reference.limits, reference.watts, np.arange(len(reference.limits)))
    before, after = (curve.watts(demand, runs.limits) for runs in (reference, wanted))
    near = demand - top
    ratios = wanted.settings - reference.settings
    cut = [] if of_watts else [before - after, (demand - after) ** 2 - (demand - before) ** 2]
    plain = [*cut, *ratios.T]
    linear = np.column_stack([*plain, *(near * each for each in plain)]) if plain else np.zeros((len(demand), 0))
    inputs = [wanted.limits - reference.limits, demand - wanted.limits, demand - reference.limits, near, *ratios.T]
    known = after - before if of_watts else np.zeros(len(demand))
    return Step(known, linear, np.column_stack(inputs), curve.slope(demand, reference.limits))


def _linear_weights(step: Step, goal: Floats) -> Floats:
    """Weighted least squares with a small penalty."""
    weighted = step.linear * np.maximum(step.informative, LEAST_WEIGHT)[:, None]
    gram = weighted.T @ step.linear + PENALTY * len(goal) * np.eye(step.linear.shape[1])
    return np.asarray(np.linalg.solve(gram, weighted.T @ goal), dtype=np.float64)


def _plain_inputs(top: float, reference: Runs, wanted: Runs, logs: Floats) -> Floats:
    """(pairs, inputs) of the plain predictor."""
    headroom = [reference.watts - reference.limits, reference.watts - wanted.limits]
    limits = [reference.limits - top, wanted.limits - top]
    return np.column_stack([*limits, reference.watts - top, logs, *headroom, *(wanted.settings - reference.settings).T])
