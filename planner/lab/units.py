"""Durations and sizes in a spec consist of a number and a unit."""

import re
from collections.abc import Mapping

_QUANTITY = re.compile(r"([0-9]*\.?[0-9]+)\s*([a-z]+)", re.IGNORECASE)
_SIZES = {"kb": 1e3, "mb": 1e6, "gb": 1e9}
_TIMES = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


def parse_duration(text: str) -> float:
    """Seconds of ``20ms``, ``500s``, ``5min`` or ``1h``. Raises ValueError."""
    return _quantity(text, _TIMES, "a duration", "20ms")


def parse_size(text: str) -> float:
    """Bytes of ``512mb`` or ``2gb``. Raises ValueError."""
    return _quantity(text, _SIZES, "a size", "2gb")


def _quantity(text: str, units: Mapping[str, float], what: str, example: str) -> float:
    match = _QUANTITY.fullmatch(text.strip())
    unit = units.get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise ValueError(f'"{text}" is not {what}; write a number and one of {", ".join(units)}, like "{example}"')
    return float(match[1]) * unit
