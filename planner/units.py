"""Quantities are shown with three digits and a unit, unknown ones as "-"."""

import functools

_SCALES = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_TIMES = ((1e-3, 1e-6, "µs"), (1.0, 1e-3, "ms"), (120.0, 1.0, "s"), (7200.0, 60.0, "min"))


def number(value: float | None, unit: str = "") -> str:
    """Format with three significant digits and a decimal prefix: ``1.50 kJ``."""
    if value is None:
        return "-"
    rounded = _rounded(value)
    scale, prefix = next((each for each in _SCALES if abs(rounded) >= each[0]), (1.0, ""))
    return f"{_digits(rounded / scale)} {prefix}{unit}".rstrip()


watts = functools.partial(number, unit="W")
joules = functools.partial(number, unit="J")
bytes_text = functools.partial(number, unit="B")


def seconds(value: float | None) -> str:
    """Format a time, from microseconds to days."""
    if value is None:
        return "-"
    rounded = _rounded(value)
    for limit, scale, unit in _TIMES:
        if abs(rounded) < limit:
            return f"{_digits(rounded / scale)} {unit}"
    return f"{value / 3600:.1f} h" if abs(value) < 172_800 else f"{value / 86_400:.1f} days"


def counted(number: int, noun: str) -> str:
    """A number of things: ``1 file``, ``2 files``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def percent(share: float | None, digits: int = 1) -> str:
    """Format a share of 1 as per cent."""
    return "-" if share is None else f"{100 * share:.{digits}f} %"


def _digits(value: float) -> str:
    return f"{value:#.3g}".rstrip(".") if value else "0"


def _rounded(value: float) -> float:
    """Round to three significant digits before the unit is chosen: 999.9 W is 1.00 kW."""
    return float(f"{value:.3g}")
