"""A transfer predicts runs of a workload, or a device, by their ratio to one reference run.

Given the reference, a setting changes all workloads alike, so the ``ratio`` learns from all pairs
of runs of the same job.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from power_models import columns
from power_models.base import Estimate, Fitted, IntervalPrediction, Range, Target, Unsuitable
from power_models.evaluate import HeldOut, folds, width
from power_models.ratio import Ratio, Runs, pairs
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


@dataclass(frozen=True, kw_only=True)
class Transfer(Fitted):
    """A ``ratio`` of one target; half its interval is ``width`` times the ``spread`` of pairs."""

    name: ClassVar[str] = "transfer"
    summary: ClassVar[str] = "from one reference run of the same job, by power limit"

    columns: Columns
    ratio: Ratio
    spread: Forest

    @classmethod
    def fit(
        cls, table: Table, target: Target, names: Columns, tried: "Tried", about: Mapping[str, Any] | None = None
    ) -> "Transfer":
        """Learn from all pairs of runs of one job.

        tried: its errors at held-out workloads, for the interval.
        Raises ValueError for columns that are missing or not above zero, and without two runs of
        one job.
        """
        runs = Runs.of(table, names.limit, names.watts, names.settings)
        ratio = Ratio.fit(runs, target.logs, table.keys(names.job), target.name == names.watts)
        seen = tuple(Range.of(name, table.numbers(name)) for name in (names.limit, *names.settings))
        half = width(tried.held_out.misses)
        return cls(
            target.name, table.rows, seen, half, about or {}, columns=names, ratio=ratio, spread=tried.spread,
        )  # fmt: skip

    def pairs(self, table: Table) -> tuple[Ints, Ints]:
        """Rows of references, and beside each one of a wanted run of its job, in both directions.

        Raises ValueError without any.
        """
        reference, wanted = pairs(table.keys(self.columns.job))
        if not len(reference):
            raise ValueError(f"no two rows agree in {', '.join(self.columns.job)}: none has a reference run")
        return reference, wanted

    def predict(self, reference: Table, wanted: Table) -> IntervalPrediction:
        """Predict wanted runs, each from the reference in the same row, or all from a single one.

        reference: settings, limit, watts and the target, as measured.
        wanted: settings and limit.
        Raises ValueError for columns that are missing or not above zero, and for another number of
        references.
        """
        if reference.rows not in (1, wanted.rows):
            raise ValueError(f"{reference.rows} reference runs for {wanted.rows} wanted; give one, or one for each")
        before = reference.take(np.arange(wanted.rows) % reference.rows)
        limit, watts, settings = self.columns.limit, self.columns.watts, self.columns.settings
        unknown = Table({**wanted.columns, watts: np.ones(wanted.rows)})
        step = self.ratio.step(*(Runs.of(each, limit, watts, settings) for each in (before, unknown)))
        values = before.only([self.target]).numbers(self.target) * np.exp(self.ratio.predict(step))
        return self.interval(Estimate(values, _spread(self.spread, step.inputs)), wanted)

    def describe(self) -> str:
        """The model in a line."""
        learned = f"from one run of the same {', '.join(self.columns.job)} at another {self.columns.limit}"
        return self._line(self.name, learned)


class Tried(NamedTuple):
    """Errors of a ratio at workloads that it was fitted without.

    spread: how far pairs are off, by where they lie.
    """

    held_out: HeldOut
    spread: Forest


def tried(table: Table, target: Target, names: Columns) -> Tried:
    """Every two runs of one job, predicted by a ratio of the other workloads.

    The spread of each pair comes from the other workloads too.
    Raises ValueError for columns that are missing or not above zero, for less than two workloads,
    and without two runs of one job.
    """
    runs, jobs = Runs.of(table, names.limit, names.watts, names.settings), table.keys(names.job)
    parts: list[tuple[Floats, Floats, Floats]] = []
    for rows in folds(table.keys(names.workload)):
        rest = np.setdiff1d(np.arange(table.rows), rows)
        ratio = Ratio.fit(runs.take(rest), target.logs[rest], jobs[rest], target.name == names.watts)
        first, second = (rows[side] for side in pairs(jobs[rows]))
        if len(first):
            step = ratio.step(runs.take(first), runs.take(second))
            parts.append((target.values[second], target.values[first] * np.exp(ratio.predict(step)), step.inputs))
    actual, predicted, inputs = (np.concatenate(part) for part in zip(*parts, strict=True))
    fold = np.repeat(np.arange(len(parts)), [len(part[0]) for part in parts])
    misses, spread = np.abs(np.log(actual / predicted)), np.empty(len(actual))
    for here in (fold == each for each in np.unique(fold)):
        spread[here] = _spread(Forest.fit(inputs[~here], misses[~here], SPREAD), inputs[here])
    return Tried(HeldOut(Transfer.name, actual, predicted, spread, fold), Forest.fit(inputs, misses, SPREAD))


def _spread(errors: Forest, inputs: Floats) -> Floats:
    return np.maximum(errors.mean(inputs), LEAST_SPREAD)
