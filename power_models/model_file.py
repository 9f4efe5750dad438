"""Model files are JSON, so that loading one can run nothing."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn, get_type_hints

import numpy as np

from power_models.base import LEVEL, PowerModel, Range
from power_models.dataclass_json import plain, typed
from power_models.registry import MODELS
from power_models.table import Table
from profilers.whole_file import FOR_ALL, whole_file

KIND = "power model"
SCHEMA = 1


def save(model: PowerModel, path: Path) -> None:
    """Write a model under another name, then move it into place.

    Raises OSError, and ValueError for infinity and for a model that predicts no number.
    """
    _try(model)
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
        _check(model)
        _try(model)
    except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: a damaged power model: {type(error).__name__}: {error}; fit it again") from None
    return model


def _to_json(model: PowerModel) -> dict[str, Any]:
    parts = {name: plain(getattr(model, name)) for name in get_type_hints(PowerModel)}
    fitted = parts.pop("regressor")
    head = {"kind": KIND, "schema": SCHEMA, "model": model.name, "unit": model.unit, "level": LEVEL}
    return {**head, **parts, "fitted": fitted}


def _from_json(data: Mapping[str, Any]) -> PowerModel:
    regressor = MODELS[data["model"]].from_json(data["fitted"])
    hints = {name: hint for name, hint in get_type_hints(PowerModel).items() if name != "regressor"}
    return PowerModel(regressor=regressor, **{name: typed(hint, data[name]) for name, hint in hints.items()})


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number")


def _finite(text: str) -> float:
    """A number whose exponent is too large would be read as infinity."""
    value = float(text)
    return value if math.isfinite(value) else _refuse(text)


def _check(model: PowerModel) -> None:
    """Raises ValueError where figures contradict each other."""
    of_target = Range(model.target, model.least, model.greatest, ())
    for each in (of_target, *model.ranges, *model.constants):
        if each.least > each.greatest:
            raise ValueError(f"{each.name} ranges from {each.least:g} to {each.greatest:g}")
    if model.least <= 0 or model.width < 0 or model.rows < 1:
        raise ValueError(f"least {model.least:g}, width {model.width:g} or rows {model.rows} is too small")


def _try(model: PowerModel) -> None:
    """Predict one row and describe: parts of a file that do not match fail now, not later."""
    first = Table({each.name: np.array(each.categories[:1] or [each.least]) for each in model.ranges})
    if not np.isfinite(model.guess(first).values).all():
        raise ValueError("it predicts no number")
    model.describe()
