"""Saved models: JSON, so that loading one can run nothing."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from power_models.base import LEVEL, PowerModel, Range
from power_models.registry import MODELS
from power_models.table import Table

KIND = "power model"
SCHEMA = 1


def save(model: PowerModel, path: Path) -> None:
    """Write a model under another name, then move it into place. Raises OSError, ValueError for what is no number."""
    draft = path.with_name(path.name + ".part")
    draft.write_text(json.dumps(to_json(model), allow_nan=False) + "\n", encoding="utf-8")
    os.replace(draft, path)


def load(path: Path) -> PowerModel:
    """Raises OSError, and ValueError where the file is no model, was cut off, is damaged, or is of another schema."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse)
    except UnicodeDecodeError:
        raise ValueError(f"{path}: no power model: its bytes are no text") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: no power model, or cut off: {error}") from None
    if not isinstance(data, dict) or data.get("kind") != KIND:
        raise ValueError(f'{path}: no power model: it has no "kind": "{KIND}"; make one with `planner power fit`')
    if data.get("schema") != SCHEMA:
        raise ValueError(f"{path}: a model of schema {data.get('schema')}, this program reads {SCHEMA}; fit it again")
    try:
        model = from_json(data)
        _try(model)
    except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: a damaged power model: {type(error).__name__}: {error}; fit it again") from None
    return model


def to_json(model: PowerModel) -> dict[str, Any]:
    """What ``from_json`` makes an equal model of."""
    return {
        "kind": KIND,
        "schema": SCHEMA,
        "model": model.regressor.name,
        "target": {"name": model.target, "unit": model.unit, "least": model.least, "greatest": model.greatest},
        "features": [_range_to_json(each) for each in model.ranges],
        "interval": {"level": LEVEL, "width": model.width if model.width == model.width else None},
        "rows": model.rows,
        "about": dict(model.about),
        "fitted": model.regressor.to_json(),
    }


def from_json(data: Mapping[str, Any]) -> PowerModel:
    """Raises ArithmeticError, AttributeError, IndexError, KeyError, TypeError or ValueError for what ``to_json`` did
    not write."""
    target, width = data["target"], data["interval"]["width"]
    return PowerModel(
        MODELS[data["model"]].from_json(data["fitted"]),
        str(target["name"]),
        float(target["least"]),
        float(target["greatest"]),
        tuple(_range_from_json(each) for each in data["features"]),
        int(data["rows"]),
        float("nan") if width is None else float(width),
        dict(data["about"]),
    )


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number")


def _try(model: PowerModel) -> None:
    """Ask a model for one row of what it was fitted on, and what it is: parts that do not fit together show now."""
    first = {each.name: np.array(each.categories[:1] or [each.least]) for each in model.ranges}
    if not np.isfinite(model.guess(Table(first)).values).all():
        raise ValueError("it predicts no number")
    model.describe()


def _range_to_json(each: Range) -> dict[str, Any]:
    if each.categories:
        return {"name": each.name, "categories": list(each.categories)}
    return {"name": each.name, "least": each.least, "greatest": each.greatest}


def _range_from_json(data: Mapping[str, Any]) -> Range:
    categories = tuple(str(each) for each in data.get("categories", ()))
    least, greatest = (float(data.get(key, "nan")) for key in ("least", "greatest"))
    return Range(str(data["name"]), least, greatest, categories)
