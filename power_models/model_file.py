"""Model files are JSON, so that loading one can run nothing."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from power_models.base import LEVEL, PowerModel, Range
from power_models.registry import MODELS
from power_models.table import Table
from profilers.whole_file import FOR_ALL, whole_file

KIND = "power model"
SCHEMA = 1


def save(model: PowerModel, path: Path) -> None:
    """Write a model under another name, then move it into place.

    Raises OSError, and ValueError for infinity and NaN.
    """
    text = json.dumps(_to_json(model), allow_nan=False) + "\n"
    with whole_file(str(path), FOR_ALL) as file:
        file.write(text.encode())


def load(path: Path) -> PowerModel:
    """Read a model.

    Raises OSError, and ValueError for a file that is no model, was cut off, is damaged, or is of
    another schema.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse, parse_float=_finite)
    except UnicodeDecodeError:
        raise ValueError(f"{path}: no power model: its bytes are no text") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: no power model, or cut off: {error}") from None
    if not isinstance(data, dict) or data.get("kind") != KIND:
        raise ValueError(f'{path}: no power model: it has no "kind": "{KIND}"; make one with `planner power fit`')
    if data.get("schema") != SCHEMA:
        raise ValueError(f"{path}: a model of schema {data.get('schema')}, this program reads {SCHEMA}; fit it again")
    try:
        model = _from_json(data)
        _try(model)
    except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: a damaged power model: {type(error).__name__}: {error}; fit it again") from None
    return model


def _to_json(model: PowerModel) -> dict[str, Any]:
    return {
        "kind": KIND,
        "schema": SCHEMA,
        "model": model.name,
        "target": {"name": model.target, "unit": model.unit, "least": model.least, "greatest": model.greatest},
        "features": [_range_to_json(each) for each in model.ranges],
        "constants": [_range_to_json(each) for each in model.constants],
        "interval": {"level": LEVEL, "width": None if math.isnan(model.width) else model.width},
        "rows": model.rows,
        "about": dict(model.about),
        "fitted": model.regressor.to_json(),
    }


def _from_json(data: Mapping[str, Any]) -> PowerModel:
    target, width = data["target"], data["interval"]["width"]
    return PowerModel(
        regressor=MODELS[data["model"]].from_json(data["fitted"]),
        target=str(target["name"]),
        rows=int(data["rows"]),
        ranges=tuple(_range_from_json(each) for each in data["features"]),
        least=float(target["least"]),
        greatest=float(target["greatest"]),
        width=math.nan if width is None else float(width),
        about=dict(data["about"]),
        constants=tuple(_range_from_json(each) for each in data["constants"]),
    )


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number")


def _finite(text: str) -> float:
    """A number whose exponent is too large would be read as infinity."""
    value = float(text)
    return value if math.isfinite(value) else _refuse(text)


def _try(model: PowerModel) -> None:
    """Predict one row and describe: parts of a file that do not match fail now, not later."""
    first = Table({each.name: np.array(each.categories[:1] or [each.least]) for each in model.ranges})
    if not np.isfinite(model.guess(first).values).all():
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
