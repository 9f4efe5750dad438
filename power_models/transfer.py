"""Transfer to a workload, or a device, that was measured once: predict the ratio to that reference run.

What changes with a setting is alike for all workloads once the reference is known, so the model (``ratio``) learns from
every pair of runs of the same known job.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from power_models import columns
from power_models.base import Prediction, Range, Target, Unsuitable
from power_models.evaluate import HeldOut, folds, width
from power_models.ratio import Ratio, Runs, pairs
from power_models.table import Ints, Table


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


class Pairs(NamedTuple):
    """Rows of a table: each wanted run with a reference run of the same job."""

    reference: Ints
    wanted: Ints


@dataclass(frozen=True)
class Transfer:
    """A ``ratio`` of one target with the ranges it holds in. ``width``: half its 90 % interval, as a logarithm."""

    name = "transfer"
    summary = "from one reference run of the same job, by power limit"

    target: str
    columns: Columns
    ratio: Ratio
    ranges: tuple[Range, ...]
    rows: int
    width: float
    about: Mapping[str, Any]

    @classmethod
    def fit(
        cls, table: Table, target: Target, names: Columns, held_out: HeldOut, about: Mapping[str, Any] | None = None
    ) -> "Transfer":
        """Learn from all pairs of runs of one job; held_out: what the interval's width comes from.

        Raises ValueError for columns that are missing or not above zero, and where no two runs are of one job.
        """
        runs = Runs.of(table, names.limit, names.watts, names.settings)
        ratio = Ratio.fit(runs, target.logs, table.keys(names.job), target.name == names.watts)
        seen = tuple(Range.of(name, table.numbers(name)) for name in (names.limit, *names.settings))
        return cls(target.name, names, ratio, seen, table.rows, width(held_out.misses), about or {})

    @property
    def unit(self) -> str:
        return columns.unit(self.target)

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.ranges)

    def pairs(self, table: Table) -> Pairs:
        """Every two different runs of one job, both ways round. Raises ValueError where there are none."""
        first, second = pairs(table.keys(self.columns.job))
        if not len(first):
            raise ValueError(f"no two rows agree in {', '.join(self.columns.job)}: none has a reference run")
        return Pairs(first, second)

    def predict(self, reference: Table, wanted: Table) -> Prediction:
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
        ratio = self.ratio.between(Runs.of(before, limit, watts, settings), Runs.of(unknown, limit, watts, settings))
        values = before.only([self.target]).numbers(self.target) * np.exp(ratio)
        outside = [(each.name, each.outside(wanted)) for each in self.ranges]
        flags = [tuple(name for name, flag in outside if flag[row]) for row in range(wanted.rows)]
        return Prediction(values, values / np.exp(self.width), values * np.exp(self.width), flags)

    def describe(self) -> str:
        """The model in a line."""
        of = f"{self.target} [{self.unit}]" if self.unit else self.target
        job = ", ".join(self.columns.job)
        return f"{of} by {self.name}, {self.rows} rows: from one run of the same {job} at another {self.columns.limit}"


def held_out(table: Table, target: Target, names: Columns) -> HeldOut:
    """Pairs of runs of workloads that a ratio was fitted without: what each was, and what was predicted for it.

    Raises ValueError for columns that are missing or not above zero, for less than two workloads, and where no two runs
    are of one job.
    """
    runs, jobs = Runs.of(table, names.limit, names.watts, names.settings), table.keys(names.job)
    actual, predicted, fold = [], [], []
    for number, rows in enumerate(folds(table.keys(names.workload))):
        rest = np.setdiff1d(np.arange(table.rows), rows)
        ratio = Ratio.fit(runs.take(rest), target.logs[rest], jobs[rest], target.name == names.watts)
        first, second = (rows[side] for side in pairs(jobs[rows]))
        actual.append(target.values[second])
        predicted.append(target.values[first] * np.exp(ratio.between(runs.take(first), runs.take(second))))
        fold.append(np.full(len(first), number))
    values = np.concatenate(actual)
    if not len(values):
        raise ValueError("no two runs are of one job: there is nothing to learn a transfer from")
    return HeldOut(Transfer.name, values, np.concatenate(predicted), np.ones(len(values)), np.concatenate(fold))
