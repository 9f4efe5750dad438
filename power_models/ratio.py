"""How one run compares with another one of the same job: the logarithm of their ratio, learned from pairs of runs.

A sum of three parts:

1. of watts, the step along the ``curve`` of the power limit: the reference's watts tell the job's demand;
2. a linear part: times grow as watts are cut, by d and d² with d = log(demand / watts); other settings count by the
   logarithm of their ratio. Each also counts times log(demand / greatest limit). A pair counts by how much its
   reference tells of the demand: under a tight limit every demand draws the same;
3. extra-trees of what is left over.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from power_models.curve import Corner, Curve
from power_models.forest import Forest
from power_models.table import Floats, Ints, Table

OPTIONS = {"n_estimators": 100, "min_samples_leaf": 10, "max_features": 0.7, "random_state": 0}
#: Pairs learned from, at most.
MOST_PAIRS = 8_000
#: Penalty on the linear part's weights, for each pair.
PENALTY = 1e-4
#: What a pair counts at least in the linear part.
LEAST_WEIGHT = 0.02


class Runs(NamedTuple):
    """Logarithms, one a run: watts allowed, watts drawn, and other settings (runs, settings)."""

    limits: Floats
    watts: Floats
    settings: Floats

    @classmethod
    def of(cls, table: Table, limit: str, watts: str, settings: tuple[str, ...]) -> "Runs":
        """Raises ValueError for a column that is missing or not above zero."""
        wanted = table.only([limit, watts, *settings])
        for name in wanted.names:
            if not np.all(wanted.numbers(name) > 0):
                raise ValueError(f"{name}: a transfer needs numbers above zero")
        logs = [np.log(wanted.numbers(name)) for name in settings]
        stacked = np.column_stack(logs) if logs else np.zeros((table.rows, 0))
        return cls(np.log(wanted.numbers(limit)), np.log(wanted.numbers(watts)), stacked)

    def take(self, rows: Ints) -> "Runs":
        return Runs(self.limits[rows], self.watts[rows], self.settings[rows])


class Step(NamedTuple):
    """From a reference to a wanted run: the part that needs no fit, what the linear part and what the trees see, and
    how much the reference's watts tell of the demand, 0 to 1."""

    known: Floats
    linear: Floats
    inputs: Floats
    told: Floats


class Between(NamedTuple):
    """log(wanted / reference), and where each pair lies: (pairs, inputs)."""

    logs: Floats
    inputs: Floats


@dataclass(frozen=True)
class Ratio:
    """log(wanted / reference) of one target. top: the greatest limit (log); of_watts: whether the target is the watts.

    weights: of the linear part, (columns,).
    """

    curve: Curve
    top: float
    of_watts: bool
    weights: Floats
    forest: Forest

    @classmethod
    def fit(cls, runs: Runs, logs: Floats, jobs: Ints, of_watts: bool) -> "Ratio":
        """logs: of the target, (runs,); jobs: one number a run. Raises ValueError where no two runs are of one job."""
        from sklearn.ensemble import ExtraTreesRegressor

        series = np.unique(np.column_stack([jobs, runs.settings]), axis=0, return_inverse=True)[1].reshape(-1)
        curve, top = Curve.fit(runs.limits, runs.watts, series), float(runs.limits.max())
        first, second = pairs(jobs, MOST_PAIRS)
        if not len(first):
            raise ValueError("no two runs are of one job: there is nothing to learn a transfer from")
        step = _step(curve, top, of_watts, runs.take(first), runs.take(second))
        left = logs[second] - logs[first] - step.known
        weighted = step.linear * np.maximum(step.told, LEAST_WEIGHT)[:, None]
        gram = weighted.T @ step.linear + PENALTY * len(first) * np.eye(step.linear.shape[1])
        weights = np.asarray(np.linalg.solve(gram, weighted.T @ left), dtype=np.float64)
        trees = ExtraTreesRegressor(**OPTIONS).fit(step.inputs, left - step.linear @ weights)
        return cls(curve, top, of_watts, weights, Forest.of(trees.estimators_))

    def between(self, reference: Runs, wanted: Runs) -> Between:
        """Pair by pair. The wanted runs' watts are not looked at."""
        step = _step(self.curve, self.top, self.of_watts, reference, wanted)
        logs = step.known + step.linear @ self.weights + self.forest.mean(step.inputs)
        return Between(np.asarray(logs, dtype=np.float64), step.inputs)

    def to_json(self) -> dict[str, Any]:
        data = {"corner": self.curve.corner._asdict(), "top": self.top, "of_watts": self.of_watts}
        return {**data, "weights": self.weights.tolist(), "forest": self.forest.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Ratio":
        curve, weights = Curve(Corner(**data["corner"])), np.array(data["weights"], dtype=np.float64)
        return cls(curve, float(data["top"]), bool(data["of_watts"]), weights, Forest.from_json(data["forest"]))


def pairs(jobs: Ints, most: int | None = None) -> tuple[Ints, Ints]:
    """Rows of every two different runs of the same job, in both directions; where there are more than ``most``, a fixed
    sample."""
    first, second = np.nonzero((jobs[:, None] == jobs[None, :]) & ~np.eye(len(jobs), dtype=bool))
    if most is not None and len(first) > most:
        kept = np.sort(np.random.default_rng(0).permutation(len(first))[:most])
        first, second = first[kept], second[kept]
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
