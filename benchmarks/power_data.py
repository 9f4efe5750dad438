"""Benchmarks of power models read measurements by others, beside a development checkout."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from reporting import show

from power_models.base import Target
from power_models.columns import choose
from power_models.evaluate import ModelScores, cross_validate, folds
from power_models.table import CsvFile, read_csv

FOLDER = Path(__file__).resolve().parent.parent.parent / "shared" / "data"


def files(*names: str, folder: str = "power") -> dict[str, CsvFile]:
    """Those of the named files that are there; a missing one is named on standard error."""
    found = {}
    for name in names:
        path = FOLDER / folder / name
        if path.is_file():
            found[name] = read_csv(path)
        else:
            print(f"skipped: {name} is not beside this checkout", file=sys.stderr)
    return found


def validated(
    name: str, file: CsvFile, target: str, by: Sequence[str], goal: str, each_value: bool = False
) -> list[dict[str, Any]]:
    """A row for each kind of model, on the default features, the chosen one marked.

    by: rows that agree in these columns are held out together; each_value: a fold for each group.
    """
    table = file.table()
    groups = table.keys(by)
    held = folds(groups, len(np.unique(groups)) if each_value else None)
    actual = Target(target, file.positive(target))
    found = cross_validate(table.only(choose(table, target, groups, by).features), actual, held)
    best = found.best()
    rows = []
    for kind, held_out in found.held_out.items():
        begins = row(name, target, f"{', '.join(by)}: {len(held)} folds", kind + " (chosen)" * (kind == best), goal)
        rows.append(begins | measured(held_out.scores()))
    return rows


def row(data: str, target: str, held_out: str, model: str, goal: str) -> dict[str, Any]:
    """What every row begins with."""
    return {"data": data, "target": target, "held out": held_out, "model": model, "wanted": goal}


def measured(scores: ModelScores) -> dict[str, Any]:
    """What every row ends with."""
    by_fold = f"{scores.coverage_least:.2f} to {scores.coverage_greatest:.2f}"
    return {"MAPE %": scores.mape, "± folds": scores.mape_stdev, "in 90 %": scores.coverage, "by fold": by_fold}


def report(title: str, rows: list[dict[str, Any]], as_json: bool) -> None:
    """Print the rows, if there are any."""
    if rows:
        show(title, rows, as_json)
