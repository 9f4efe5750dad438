"""Transfer to a workload, or a device, that was measured once: predict the ratio to that reference run.

What changes with a setting is alike for all workloads once the reference is known, so the model learns from every pair
of runs of the same known job. log(wanted / reference) is a sum of three parts:

1. of watts, the step along the ``curve`` of the power limit: the reference's watts tell the job's demand;
2. a linear part: times grow as watts are cut, by d and d² with d = log(demand / watts); other settings count by the
   logarithm of their ratio. Each also counts times log(demand / greatest limit);
3. extra-trees of what is left over.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from power_models.base import Target
from power_models.curve import Corner, Curve
from power_models.evaluate import folds, width
from power_models.forest import Forest
from power_models.table import Floats, Ints, Table

OPTIONS = {"n_estimators": 100, "min_samples_leaf": 10, "max_features": 0.7, "random_state": 0}
#: Pairs learned from, at most.
MOST_PAIRS = 8_000
#: Penalty on the linear part's weights, for each pair.
PENALTY = 1e-4


class Columns(NamedTuple):
    """Names of columns: the limit on watts, the watts drawn, and what else is set before a run, all above zero."""

    limit: str
    watts: str
    settings: tuple[str, ...] = ()


class Runs(NamedTuple):
    """Logarithms, one a run: watts allowed, watts drawn, and other settings (runs, settings)."""

    limits: Floats
    watts: Floats
    settings: Floats

    @classmethod
    def of(cls, table: Table, names: Columns) -> "Runs":
        """Raises ValueError for a column that is missing or not above zero."""
        wanted = table.only([names.limit, names.watts, *names.settings])
        for name in wanted.names:
            if not np.all(wanted.numbers(name) > 0):
                raise ValueError(f"{name}: a transfer needs numbers above zero")
        settings = [np.log(wanted.numbers(name)) for name in names.settings]
        stacked = np.column_stack(settings) if settings else np.zeros((table.rows, 0))
        return cls(np.log(wanted.numbers(names.limit)), np.log(wanted.numbers(names.watts)), stacked)

    def take(self, rows: Ints) -> "Runs":
        return Runs(self.limits[rows], self.watts[rows], self.settings[rows])


class Step(NamedTuple):
    """From a reference to a wanted run: the part that needs no fit, what the linear part and what the trees see."""

    known: Floats
    linear: Floats
    inputs: Floats


class Steps(NamedTuple):
    """How steps are described: by the curve of the power limit, and the greatest limit (log)."""

    curve: Curve
    top: float
    of_watts: bool

    @classmethod
    def fit(cls, runs: Runs, jobs: Ints, of_watts: bool) -> "Steps":
        series = np.unique(np.column_stack([jobs, runs.settings]), axis=0, return_inverse=True)[1].reshape(-1)
        return cls(Curve.fit(runs.limits, runs.watts, series), float(runs.limits.max()), of_watts)

    def between(self, reference: Runs, wanted: Runs) -> Step:
        """The wanted runs' watts are not looked at."""
        demand = self.curve.demands(reference.limits, reference.watts, np.arange(len(reference.limits)))
        before, after = (self.curve.watts(demand, runs.limits) for runs in (reference, wanted))
        near = demand - self.top
        ratios = wanted.settings - reference.settings
        cut = [] if self.of_watts else [before - after, (demand - after) ** 2 - (demand - before) ** 2]
        plain = [*cut, *ratios.T]
        linear = np.column_stack([*plain, *(near * each for each in plain)]) if plain else np.zeros((len(demand), 0))
        inputs = [wanted.limits - reference.limits, demand - wanted.limits, demand - reference.limits, near, *ratios.T]
        return Step(after - before if self.of_watts else np.zeros(len(demand)), linear, np.column_stack(inputs))


class Ratio(NamedTuple):
    """The fitted parts: log(wanted / reference) of one target."""

    steps: Steps
    weights: Floats
    forest: Forest

    @classmethod
    def fit(cls, runs: Runs, logs: Floats, jobs: Ints, of_watts: bool) -> "Ratio":
        from sklearn.ensemble import ExtraTreesRegressor

        steps = Steps.fit(runs, jobs, of_watts)
        first, second = pairs(jobs)
        if not len(first):
            raise ValueError("no two runs are of one job: there is nothing to learn a transfer from")
        known, linear, inputs = steps.between(runs.take(first), runs.take(second))
        left = logs[second] - logs[first] - known
        gram = linear.T @ linear + PENALTY * len(first) * np.eye(linear.shape[1])
        weights = np.asarray(np.linalg.solve(gram, linear.T @ left), dtype=np.float64)
        trees = ExtraTreesRegressor(**OPTIONS).fit(inputs, left - linear @ weights)
        return cls(steps, weights, Forest.of(trees.estimators_))

    def between(self, reference: Runs, wanted: Runs) -> Floats:
        known, linear, inputs = self.steps.between(reference, wanted)
        return np.asarray(known + linear @ self.weights + self.forest.leaves(inputs).mean(axis=0), dtype=np.float64)


class Interval(NamedTuple):
    """Values with 90 % intervals."""

    values: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True)
class Transfer:
    """A ratio model of one target. ``width``: half its 90 % interval, as a logarithm."""

    target: str
    names: Columns
    ratio: Ratio
    width: float

    @classmethod
    def fit(
        cls, table: Table, target: Target, job: Sequence[str], workload: Sequence[str], names: Columns
    ) -> "Transfer":
        """Learn from pairs of runs that agree in the ``job`` columns.

        workload: columns that tell workloads apart. The interval is as wide as the errors with workloads held out.
        Raises ValueError for columns that are missing or not above zero, for less than two workloads, and where no two
        runs are of one job.
        """
        runs, jobs, of_watts = Runs.of(table, names), table.keys(job), target.name == names.watts
        misses = []
        for rows in folds(table.keys(workload)):
            rest = np.setdiff1d(np.arange(table.rows), rows)
            ratio = Ratio.fit(runs.take(rest), target.logs[rest], jobs[rest], of_watts)
            first, second = (rows[side] for side in pairs(jobs[rows]))
            found = ratio.between(runs.take(first), runs.take(second))
            misses.append(np.abs(target.logs[second] - target.logs[first] - found))
        whole = Ratio.fit(runs, target.logs, jobs, of_watts)
        return cls(target.name, names, whole, width(np.concatenate(misses)))

    def predict(self, reference: Table, wanted: Table) -> Interval:
        """What wanted runs take, each from the reference run in the same row (or all from the one that there is).

        reference: settings, limit, watts and the target, as measured; wanted: settings and limit. Raises ValueError for
        columns that are missing or not above zero, and for another number of references.
        """
        if reference.rows not in (1, wanted.rows):
            raise ValueError(f"{reference.rows} reference runs for {wanted.rows} wanted; give one, or one for each")
        rows = np.arange(wanted.rows) if reference.rows == wanted.rows else np.zeros(wanted.rows, dtype=np.intp)
        before = reference.take(rows)
        unknown = Table({**wanted.columns, self.names.watts: np.ones(wanted.rows)})
        ratio = self.ratio.between(Runs.of(before, self.names), Runs.of(unknown, self.names))
        values = before.only([self.target]).numbers(self.target) * np.exp(ratio)
        return Interval(values, values / np.exp(self.width), values * np.exp(self.width))

    def to_json(self) -> dict[str, Any]:
        steps = self.ratio.steps
        return {
            "target": self.target,
            "columns": self.names._asdict(),
            "corner": steps.curve.corner._asdict(),
            "top": steps.top,
            "weights": self.ratio.weights.tolist(),
            "forest": self.ratio.forest.to_json(),
            "width": self.width,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Transfer":
        held = data["columns"]
        names = Columns(held["limit"], held["watts"], tuple(held["settings"]))
        steps = Steps(Curve(Corner(**data["corner"])), data["top"], data["target"] == names.watts)
        ratio = Ratio(steps, np.array(data["weights"], dtype=np.float64), Forest.from_json(data["forest"]))
        return cls(data["target"], names, ratio, data["width"])


def pairs(jobs: Ints, most: int = MOST_PAIRS) -> tuple[Ints, Ints]:
    """Rows of every two different runs of the same job, in both directions; a fixed sample where there are many."""
    first, second = np.nonzero((jobs[:, None] == jobs[None, :]) & ~np.eye(len(jobs), dtype=bool))
    if len(first) > most:
        kept = np.sort(np.random.default_rng(0).permutation(len(first))[:most])
        first, second = first[kept], second[kept]
    return first, second
