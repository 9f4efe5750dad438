"""Rates and durations in files and options consist of a number and a unit."""

import math
import re
from collections.abc import Mapping

RATE_UNITS = {"bit": 1e0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
_TIMES = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_QUANTITY = re.compile(r"([0-9]*\.?[0-9]+)\s*([a-z]+)", re.IGNORECASE)


def parse_rate(text: str) -> float:
    """Bytes per second of a rate as tc(8) writes it, such as ``100mbit``. Raises ValueError."""
    rate = quantity(text, re.sub("/s$", "", text.strip(), flags=re.IGNORECASE), RATE_UNITS, "a rate", "100mbit") / 8
    if not 0 < rate < math.inf:
        raise ValueError(f'rate "{text}" is not above zero and finite')
    return rate


def parse_duration(text: str) -> float:
    """Seconds of ``20ms``, ``500s``, ``5min`` or ``1h``. Raises ValueError."""
    return quantity(text, text.strip(), _TIMES, "a duration", "20ms")


def quantity(text: str, stripped: str, units: Mapping[str, float], what: str, example: str) -> float:
    """The number times its unit. text, what, example: for the error. Raises ValueError."""
    match = _QUANTITY.fullmatch(stripped)
    unit = units.get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise ValueError(f'"{text}" is not {what}; write a number and one of {", ".join(units)}, like "{example}"')
    return float(match[1]) * unit
