"""A transfer predicts runs of a workload, or a device, by their ratio to one reference run.

Given the reference, a setting changes all workloads alike, so the ``ratio`` learns from all pairs
of runs of the same job.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from power_models import columns
from power_models.base import Fitted, IntervalPrediction, Range, Target, Unsuitable
from power_models.evaluate import HeldOut, folds, width
from power_models.ratio import Predicted, Ratio, Runs, pairs
from power_models.table import Floats, Ints, Table
from power_models.trees import Forest

#: The forest of errors has large leaves: it tells the size of errors in a region, not their sign.
SPREAD = {"n_estimators": 100, "min_samples_leaf": 50, "random_state": 0}
#: Pairs are taken to be off by this at least, as a logarithm.
LEAST_SPREAD = 1e-6


class Columns(NamedTuple):
    """Names of columns.

    limit: on the watts.
    watts: drawn.
    job: runs that agree in these tell of each other.
    workload: those of the job's that tell workloads apart, which are held out together.
    settings: further columns, above zero, that are set before a run.
    """

    limit: str
    watts: str
    job: tuple[str, ...]
    workload: tuple[str, ...]
    settings: tuple[str, ...] = ()

    @classmethod
    def found(cls, table: Table, target: str, job: tuple[str, ...], workload: tuple[str, ...]) -> "Columns":
        """The first column of limits, and the target or else the first of watts.

        Raises Unsuitable without one.
        """
        limit = next((name for name in table.names if columns.is_limit(name)), None)
        drawn = [name for name in table.names if columns.unit(name).endswith("W") and columns.is_outcome(name)]
        watts = target if target in drawn else next(iter(drawn), None)
        if limit is None or watts is None:
            raise Unsuitable("a transfer needs a column of power limits (named power limit or cap) and one of watts")
        return cls(limit, watts, tuple(dict.fromkeys((*workload, *job))), workload)


class RunPairs(NamedTuple):
    """Rows of a table: each wanted run with a reference run of the same job."""

    reference: Ints
    wanted: Ints


@dataclass(frozen=True)
class Transfer(Fitted):
    """A ``ratio`` of one target with the ranges it holds in.

    Half its 90 % interval, a logarithm, is ``width`` times the ``spread`` of such pairs.
    """

    name = "transfer"
    summary = "from one reference run of the same job, by power limit"

    target: str
    columns: Columns
    ratio: Ratio
    spread: Forest
    ranges: tuple[Range, ...]
    rows: int
    width: float
    about: Mapping[str, Any]
    constants: tuple[Range, ...] = ()

    @classmethod
    def fit(
        cls, table: Table, target: Target, names: Columns, tried: "Tried", about: Mapping[str, Any] | None = None
    ) -> "Transfer":
        """Learn from all pairs of runs of one job.

        tried: its errors at held-out workloads, for the interval and the plain predictor's share.
        Raises ValueError for columns that are missing or not above zero, and without two runs of
        one job.
        """
        runs = Runs.of(table, names.limit, names.watts, names.settings)
        ratio = Ratio.fit(runs, target.logs, table.keys(names.job), target.name == names.watts)
        ratio = ratio.sharing(tried.share)
        seen = tuple(Range.of(name, table.numbers(name)) for name in (names.limit, *names.settings))
        half = width(tried.held_out.misses)
        return cls(target.name, names, ratio, tried.spread, seen, table.rows, half, about or {})

    def pairs(self, table: Table) -> RunPairs:
        """Every two runs of one job, in both directions. Raises ValueError without any."""
        first, second = pairs(table.keys(self.columns.job))
        if not len(first):
            raise ValueError(f"no two rows agree in {', '.join(self.columns.job)}: none has a reference run")
        return RunPairs(first, second)

    def predict(self, reference: Table, wanted: Table) -> IntervalPrediction:
        """Predict wanted runs, each from the reference in the same row, or all from a single one.

        reference: settings, limit, watts and the target, as measured.
        wanted: settings and limit.
        Raises ValueError for columns that are missing or not above zero, and for another number of
        references.
        """
        if reference.rows not in (1, wanted.rows):
            raise ValueError(f"{reference.rows} reference runs for {wanted.rows} wanted; give one, or one for each")
        rows = np.arange(wanted.rows) if reference.rows == wanted.rows else np.zeros(wanted.rows, dtype=np.intp)
        limit, watts, settings = self.columns.limit, self.columns.watts, self.columns.settings
        before = reference.take(rows)
        unknown = Table({**wanted.columns, watts: np.ones(wanted.rows)})
        known = before.only([self.target]).numbers(self.target)
        reference_runs, wanted_runs = (Runs.of(each, limit, watts, settings) for each in (before, unknown))
        found = self.ratio.predict(reference_runs, wanted_runs, np.log(known))
        values = known * np.exp(found.mixed(self.ratio.share))
        return self.interval(values, _spread(self.spread, found.inputs), wanted)

    def describe(self) -> str:
        """The model in a line."""
        job = ", ".join(self.columns.job)
        what = f"from one run of the same {job} at another {self.columns.limit}"
        return f"{self._title()} by {self.name}, {self.rows} rows: {what}"


class Tried(NamedTuple):
    """Errors of a ratio at workloads that it was fitted without.

    spread: how far pairs are off, by where they lie.
    share: of the plain predictor in the ratio.
    """

    held_out: HeldOut
    spread: Forest
    share: float


def tried(table: Table, target: Target, names: Columns) -> Tried:
    """Every two runs of one job, predicted by a ratio of the other workloads.

    The share and the spread of each pair come from the other workloads too.
    Raises ValueError for columns that are missing or not above zero, for less than two workloads,
    and without two runs of one job.
    """
    reference, wanted, predicted, fold = _held_out(table, target, names)
    before, actual = target.values[reference], target.values[wanted]
    logs, mixed, spread = np.log(actual / before), np.empty(len(actual)), np.empty(len(actual))
    for here in (fold == each for each in np.unique(fold)):
        mixed[here] = predicted.take(here).mixed(predicted.take(~here).best_share(logs[~here]))
    misses = np.abs(logs - mixed)
    for here in (fold == each for each in np.unique(fold)):
        spread[here] = _spread(_errors(predicted.inputs[~here], misses[~here]), predicted.inputs[here])
    held_out = HeldOut(Transfer.name, actual, before * np.exp(mixed), spread, fold)
    return Tried(held_out, _errors(predicted.inputs, misses), predicted.best_share(logs))


def _held_out(table: Table, target: Target, names: Columns) -> tuple[Ints, Ints, Predicted, Ints]:
    """For each pair its two rows, the prediction without its workload, and its fold."""
    runs, jobs = Runs.of(table, names.limit, names.watts, names.settings), table.keys(names.job)
    found: list[tuple[Ints, Ints, Predicted]] = []
    for rows in folds(table.keys(names.workload)):
        rest = np.setdiff1d(np.arange(table.rows), rows)
        ratio = Ratio.fit(runs.take(rest), target.logs[rest], jobs[rest], target.name == names.watts)
        first, second = (rows[side] for side in pairs(jobs[rows]))
        if len(first):
            found.append((first, second, ratio.predict(runs.take(first), runs.take(second), target.logs[first])))
    reference, wanted = (np.concatenate([each[side] for each in found]) for side in (0, 1))
    predicted = Predicted(*(np.concatenate(part) for part in zip(*(each[2] for each in found), strict=True)))
    return reference, wanted, predicted, np.repeat(np.arange(len(found)), [len(first) for first, *_ in found])


def _errors(inputs: Floats, misses: Floats) -> Forest:
    from sklearn.ensemble import ExtraTreesRegressor

    return Forest.of(ExtraTreesRegressor(**SPREAD).fit(inputs, misses).estimators_)


def _spread(errors: Forest, inputs: Floats) -> Floats:
    return np.maximum(errors.mean(inputs), LEAST_SPREAD)
