"""Quantities as people read them."""

_SCALES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


def number(value: float | None, unit: str = "") -> str:
    """Three significant digits with a prefix; "-" for what is not known."""
    if value is None:
        return "-"
    if value == 0:
        return f"0 {unit}".rstrip()
    for scale, prefix in _SCALES:
        if abs(value) >= scale or scale == 1.0:
            digits = max(0, 2 - len(str(int(abs(value) / scale))) + 1)
            return f"{value / scale:.{digits}f} {prefix}{unit}".rstrip()
    raise AssertionError("the last scale takes everything")


def seconds(value: float | None) -> str:
    """From microseconds to days."""
    if value is None:
        return "-"
    for limit, scale, unit in ((1e-3, 1e-6, "µs"), (1.0, 1e-3, "ms"), (120.0, 1.0, "s"), (7200.0, 60.0, "min")):
        if abs(value) < limit:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 3600:.1f} h" if value < 172_800 else f"{value / 86_400:.1f} days"


def watts(value: float | None) -> str:
    return number(value, "W")


def joules(value: float | None) -> str:
    return number(value, "J")


def bytes_text(value: float | None) -> str:
    return number(value, "B")
