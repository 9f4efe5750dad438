"""Fit models to a table and hold saved ones against another: what `planner power fit` and `evaluate` do."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from planner.console import OnProgress
from planner.errors import PowerError
from power_models import evaluate, transfer
from power_models.base import Target
from power_models.columns import Choice, choose
from power_models.modelfile import Model
from power_models.table import CsvFile, Floats, Ints, Table

Names = tuple[str, ...]


class Fit(NamedTuple):
    """What a fit compared, on what, and what it chose and saved."""

    scores: Sequence[evaluate.Scores]
    unsuitable: Mapping[str, str]
    choice: Choice
    groups: Sequence[str]
    folds: int
    model: Model
    saved: Path

    def to_json(self) -> dict[str, Any]:
        """{"models": [{"name", "mape", "mape_stdev", "rmse", "rmse_stdev", "coverage"}], "chosen", "saved", …}.

        mape: per cent; rmse: in the target's unit; coverage: share of 0 to 1.
        """
        return {
            "models": [each._asdict() for each in self.scores],
            "chosen": self.model.name,
            "saved": str(self.saved),
            "target": self.model.target,
            "unit": self.model.unit or None,
            "rows": self.model.rows,
            "groups": list(self.groups),
            "folds": self.folds,
            "features": list(self.choice.features),
            "left_out": dict(self.choice.left_out),
            "unsuitable": dict(self.unsuitable),
        }


class Evaluation(NamedTuple):
    """A saved model held against a table. outside: the lines beyond what it was fitted on, with the features."""

    model: Model
    rows: int
    mape: float
    rmse: float
    coverage: float | None
    outside: Mapping[int, Sequence[str]]

    def to_json(self) -> dict[str, Any]:
        """{"model", "target", "unit", "rows", "mape", "rmse", "coverage", "extrapolated": [{"line", "features"}]}."""
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
        }


def compared(
    file: CsvFile, target: str, features: Names, by: Names, kinds: Names, folds: int | None, out: Path,
    on_progress: OnProgress,
) -> Fit:  # fmt: skip
    """The kinds (all, if none is named) on rows held out by groups, the best on all rows.

    Raises ValueError for what cannot be fitted, PowerError for features that are none.
    """
    table, wanted = file.table(), Target(target, file.positive(target))
    groups = table.keys(by) if by else np.arange(table.rows)
    choice = _choice(table, target, groups, features)
    held = evaluate.folds(groups, folds)
    used = table.only(choice.features)
    found = evaluate.cross_validate(used, wanted, held, kinds, on_progress)
    best = found.held_out[found.best()]
    model = evaluate.final(used, wanted, best, _about(best, by, len(held)))
    scores = [each.scores() for each in found.held_out.values()]
    return Fit(scores, found.unsuitable, choice, by, len(held), model, out)


def transferred(file: CsvFile, target: str, by: Names, job: Names, out: Path) -> Fit:
    """A transfer between runs that agree in the ``by`` and ``job`` columns, held out by the former.

    Raises ValueError for what cannot be fitted.
    """
    table, wanted = file.table(), Target(target, file.positive(target))
    names = transfer.Columns.found(table, target, job, by)
    tried = transfer.tried(table, wanted, names)
    held, folds = tried.held_out, len(np.unique(tried.held_out.fold))
    model = transfer.Transfer.fit(table, wanted, names, tried, _about(held, by, folds))
    choice = Choice((names.limit, *(f"{name} of the reference" for name in dict.fromkeys((names.watts, target)))), {})
    return Fit([held.scores()], {}, choice, by, folds, model, out)


def evaluated(model: Model, file: CsvFile) -> Evaluation:
    """A model held against every row, a transfer against every two runs of one job. Raises ValueError."""
    table, actual = file.table(), file.positive(model.target)
    if isinstance(model, transfer.Transfer):
        reference, rows = model.pairs(table)
        found = model.predict(table.take(reference), table.take(rows))
    else:
        rows = np.arange(table.rows)
        found = model.predict(table)
    error = found.values - actual[rows]
    inside = (found.low <= actual[rows]) & (actual[rows] <= found.high)
    outside = {file.lines[row]: names for row, names in zip(rows, found.extrapolated, strict=True) if names}
    return Evaluation(
        model, len(rows), _mape(error, actual[rows]), float(np.sqrt((error**2).mean())),
        None if np.isnan(model.width) else float(inside.mean()), outside,
    )  # fmt: skip


def _mape(error: Floats, actual: Floats) -> float:
    return float(100 * np.abs(error / actual).mean())


def _about(held: evaluate.HeldOut, by: Names, folds: int) -> dict[str, Any]:
    return {"groups": list(by), "folds": folds, "scores": held.scores()._asdict()}


def _choice(table: Table, target: str, groups: Ints, named: Names) -> Choice:
    """The features named, or the default ones. Raises PowerError where there are none."""
    if target in named:
        raise PowerError(f"--features {target}: is the target itself")
    found = Choice(table.only(named).names, {}) if named else choose(table, target, groups)
    if not found.features:
        raise PowerError("there is no column to predict from; name some with --features")
    return found
