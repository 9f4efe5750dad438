"""A stored object becomes JSON by the fields of its dataclass, and is made from it again."""

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Self, cast, get_args, get_origin, get_type_hints

import numpy as np


class Stored:
    """A dataclass of numbers, texts, arrays, named tuples and other stored objects."""

    def to_json(self) -> dict[str, Any]:
        """Data that JSON can hold."""
        return {name: plain(getattr(self, name)) for name in _names(type(self))}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """An equal object. Raises KeyError, TypeError or ValueError for other data."""
        hints = get_type_hints(cls)
        return cls(**{name: typed(hints[name], data[name]) for name in _names(cls)})


def typed(hint: Any, value: Any) -> Any:
    """A value of JSON as the type of an annotation; null is NaN."""
    if hint is Any:
        return value
    if hint is float and value is None:
        return math.nan
    if hasattr(hint, "from_json"):
        return hint.from_json(value)
    if hasattr(hint, "_fields"):
        return hint(**{name: typed(each, value[name]) for name, each in get_type_hints(hint).items()})
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is np.ndarray:
        return np.array(value, dtype=get_args(arguments[1])[0])
    if origin is tuple:
        return tuple(typed(arguments[0], each) for each in value)
    if origin is Mapping:
        return {str(key): typed(arguments[1], each) for key, each in value.items()}
    return hint(value)


def _names(kind: type) -> list[str]:
    return [field.name for field in fields(cast(Any, kind))]


def plain(value: Any) -> Any:
    """A value as JSON can hold it; NaN, which it cannot, is null."""
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, Stored):
        return value.to_json()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if hasattr(value, "_asdict"):
        return {name: plain(each) for name, each in value._asdict().items()}
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, tuple) else value
