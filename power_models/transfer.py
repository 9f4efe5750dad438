"""Transfer to a workload, or a device, that was measured once: predict the ratio to that reference run.

What changes with a setting is alike for all workloads once the reference is known, so the model (``ratio``) learns from
every pair of runs of the same known job.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from power_models import columns
from power_models.base import Fitted, IntervalPrediction, Range, Target, Unsuitable
from power_models.evaluate import HeldOut, folds, width
from power_models.forest import Forest
from power_models.ratio import Ratio, Runs, pairs
from power_models.table import Floats, Ints, Table

#: The forest of errors: large leaves, for it is how far pairs are off that it tells, not where to.
SPREAD = {"n_estimators": 100, "min_samples_leaf": 50, "random_state": 0}
#: Pairs are taken to be off by this at least, as a logarithm.
LEAST_SPREAD = 1e-6


class Columns(NamedTuple):
    """Names of columns. limit: on the watts; watts: drawn; job: in which runs agree that tell of each other.

    workload: which of those tell workloads apart, held out together; settings: what else is set before a run, above
    zero.
    """

    limit: str
    watts: str
    job: tuple[str, ...]
    workload: tuple[str, ...]
    settings: tuple[str, ...] = ()

    @classmethod
    def found(cls, table: Table, target: str, job: tuple[str, ...], workload: tuple[str, ...]) -> "Columns":
        """The first column of limits, and the target or else the first of watts. Raises Unsuitable without one."""
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

    Half its 90 % interval is, as a logarithm, ``width`` times what ``spread`` says of pairs like this one.
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

    @classmethod
    def fit(
        cls, table: Table, target: Target, names: Columns, tried: "Tried", about: Mapping[str, Any] | None = None
    ) -> "Transfer":
        """Learn from all pairs of runs of one job; tried: what its interval comes from, see ``tried``.

        Raises ValueError for columns that are missing or not above zero, and where no two runs are of one job.
        """
        runs = Runs.of(table, names.limit, names.watts, names.settings)
        ratio = Ratio.fit(runs, target.logs, table.keys(names.job), target.name == names.watts)
        seen = tuple(Range.of(name, table.numbers(name)) for name in (names.limit, *names.settings))
        half = width(tried.held_out.misses)
        return cls(target.name, names, ratio, tried.spread, seen, table.rows, half, about or {})

    def pairs(self, table: Table) -> RunPairs:
        """Every two different runs of one job, both ways round. Raises ValueError where there are none."""
        first, second = pairs(table.keys(self.columns.job))
        if not len(first):
            raise ValueError(f"no two rows agree in {', '.join(self.columns.job)}: none has a reference run")
        return RunPairs(first, second)

    def predict(self, reference: Table, wanted: Table) -> IntervalPrediction:
        """What wanted runs take, each from the reference run in the same row (or all from the one that there is).

        reference: settings, limit, watts and the target, as measured; wanted: settings and limit. Raises ValueError for
        columns that are missing or not above zero, and for another number of references.
        """
        if reference.rows not in (1, wanted.rows):
            raise ValueError(f"{reference.rows} reference runs for {wanted.rows} wanted; give one, or one for each")
        rows = np.arange(wanted.rows) if reference.rows == wanted.rows else np.zeros(wanted.rows, dtype=np.intp)
        limit, watts, settings = self.columns.limit, self.columns.watts, self.columns.settings
        before = reference.take(rows)
        unknown = Table({**wanted.columns, watts: np.ones(wanted.rows)})
        step = self.ratio.between(Runs.of(before, limit, watts, settings), Runs.of(unknown, limit, watts, settings))
        values = before.only([self.target]).numbers(self.target) * np.exp(step.logs)
        return self.interval(values, _spread(self.spread, step.inputs), wanted)

    def describe(self) -> str:
        """The model in a line."""
        job = ", ".join(self.columns.job)
        what = f"from one run of the same {job} at another {self.columns.limit}"
        return f"{self._of()} by {self.name}, {self.rows} rows: {what}"


class Tried(NamedTuple):
    """What a ratio was off by at workloads that it was fitted without, and how far pairs like them are off."""

    held_out: HeldOut
    spread: Forest


def tried(table: Table, target: Target, names: Columns) -> Tried:
    """Every two runs of one job, predicted by a ratio of the other workloads.

    Each one's spread is what a forest says that has not seen its workload either. Raises ValueError for columns that
    are missing or not above zero, for less than two workloads, and where no two runs are of one job.
    """
    runs, jobs = Runs.of(table, names.limit, names.watts, names.settings), table.keys(names.job)
    found: list[tuple[Floats, Floats, Floats]] = []
    for rows in folds(table.keys(names.workload)):
        rest = np.setdiff1d(np.arange(table.rows), rows)
        ratio = Ratio.fit(runs.take(rest), target.logs[rest], jobs[rest], target.name == names.watts)
        first, second = (rows[side] for side in pairs(jobs[rows]))
        if not len(first):
            continue
        step = ratio.between(runs.take(first), runs.take(second))
        found.append((step.inputs, target.values[second], target.values[first] * np.exp(step.logs)))
    inputs, actual, predicted = (np.concatenate(part) for part in zip(*found, strict=True))
    fold = np.repeat(np.arange(len(found)), [len(part[0]) for part in found])
    misses = np.abs(np.log(actual / predicted))
    spread = np.empty(len(misses))
    for each in range(len(found)):
        unseen = _errors(inputs[fold != each], misses[fold != each])
        spread[fold == each] = _spread(unseen, inputs[fold == each])
    return Tried(HeldOut(Transfer.name, actual, predicted, spread, fold), _errors(inputs, misses))


def _errors(inputs: Floats, misses: Floats) -> Forest:
    from sklearn.ensemble import ExtraTreesRegressor

    return Forest.of(ExtraTreesRegressor(**SPREAD).fit(inputs, misses).estimators_)


def _spread(errors: Forest, inputs: Floats) -> Floats:
    return np.maximum(errors.mean(inputs), LEAST_SPREAD)
