"""`planner power fit` compares kinds of models on a table; `evaluate` tests a saved model."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from planner.console import OnProgress
from planner.errors import PowerError
from power_models import evaluate
from power_models.base import PowerModel, Range, Target, constants
from power_models.columns import Choice, choose
from power_models.linear import Mean
from power_models.table import CsvFile, Ints, Table

Names = tuple[str, ...]


class Fit(NamedTuple):
    """The kinds that were compared, the data, and the model that was chosen and saved."""

    scores: Sequence[evaluate.ModelScores]
    unsuitable: Mapping[str, str]
    choice: Choice
    groups: Sequence[str]
    folds: int
    model: PowerModel
    saved: Path

    @property
    def beats_mean(self) -> bool | None:
        """Whether a kind errs less than the mean of all rows; None without that comparison."""
        mapes = {each.name: each.mape for each in self.scores}
        mean = mapes.pop(Mean.name, None)
        return None if mean is None or not mapes else min(mapes.values()) < mean

    def to_json(self) -> dict[str, Any]:
        """``ModelScores`` of each kind in "models"; beats_mean: null where no mean was compared."""
        return {
            "models": [each._asdict() for each in self.scores],
            "chosen": self.model.name,
            "beats_mean": self.beats_mean,
            "saved": str(self.saved),
            "target": self.model.target,
            "unit": self.model.unit or None,
            "rows": self.model.rows,
            "groups": list(self.groups),
            "folds": self.folds,
            "features": list(self.choice.features),
            "left_out": dict(self.choice.left_out),
            "constants": {each.name: each.text for each in self.model.constants},
            "unsuitable": dict(self.unsuitable),
        }


class Evaluation(NamedTuple):
    """A saved model tested on a table.

    rows: predictions.
    outside: the lines beyond what it was fitted on, with the columns.
    """

    model: PowerModel
    rows: int
    mape: float
    rmse: float
    coverage: float | None
    outside: Mapping[int, Sequence[str]]

    @property
    def exceeded(self) -> dict[Range, int]:
        """The ranges that lines lie outside of, and the number of those lines."""
        ranges = (*self.model.ranges, *self.model.constants)
        counts = {each: sum(each.name in names for names in self.outside.values()) for each in ranges}
        return {each: count for each, count in counts.items() if count}

    def to_json(self) -> dict[str, Any]:
        """ModelScores, "extrapolated" lines with their columns, and "fitted_on", their ranges."""
        lines = [{"line": line, "features": list(names)} for line, names in self.outside.items()]
        return {
            "model": self.model.name,
            "target": self.model.target,
            "unit": self.model.unit or None,
            "rows": self.rows,
            "mape": self.mape,
            "rmse": self.rmse,
            "coverage": self.coverage,
            "extrapolated": lines,
            "fitted_on": {each.name: each.text for each in self.exceeded},
        }


def compared(
    file: CsvFile, target: str, features: Names, by: Names, kinds: Names, folds: int | None, out: Path,
    on_progress: OnProgress,
) -> Fit:  # fmt: skip
    """Compare kinds (all, if none is named) on rows held out by groups; fit the best on all rows.

    Raises ValueError for data that cannot be fitted, PowerError for features that do not exist.
    """
    table, measured = file.table(), Target(target, file.positive(target))
    groups = table.keys(by) if by else np.arange(table.rows)
    choice = _choice(table, target, groups, by, features)
    held = evaluate.folds(groups, folds)
    used = table.only(choice.features)
    found = evaluate.cross_validate(used, measured, held, kinds, on_progress)
    best = found.held_out[found.best()]
    model = evaluate.final(used, measured, best, _about(best, by, len(held)))
    scores = [each.scores() for each in found.held_out.values()]
    known = constants(table, (*choice.features, target))
    return Fit(scores, found.unsuitable, choice, by, len(held), replace(model, constants=known), out)


def evaluated(model: PowerModel, file: CsvFile) -> Evaluation:
    """Test a model on every row. Raises ValueError."""
    actual, found = file.positive(model.target), model.predict(file.table())
    error = found.values - actual
    inside = (found.low <= actual) & (actual <= found.high)
    outside = {line: names for line, names in zip(file.lines, found.extrapolated, strict=True) if names}
    return Evaluation(
        model, len(actual), float(100 * np.abs(error / actual).mean()), float(np.sqrt((error**2).mean())),
        None if np.isnan(model.width) else float(inside.mean()), outside,
    )  # fmt: skip


def _about(held: evaluate.HeldOut, by: Names, folds: int) -> dict[str, Any]:
    return {"groups": list(by), "folds": folds, "scores": held.scores()._asdict()}


def _choice(table: Table, target: str, groups: Ints, by: Names, named: Names) -> Choice:
    """The named features, or the default ones. Raises PowerError where there are none."""
    if target in named:
        raise PowerError(f"--features {target}: is the target itself")
    found = Choice(table.only(named).names, {}) if named else choose(table, target, groups, by)
    if not found.features:
        raise PowerError("there is no column to predict from; name some with --features")
    return found
