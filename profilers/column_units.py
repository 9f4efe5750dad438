"""Names of columns, in any style, tell what their numbers are of, and in which unit. Pure."""

import re
from typing import Optional, Tuple

WORD = re.compile(r"[mku\u00b5](?:Wh|Watts?|W|J)(?![A-Za-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
WATTS = frozenset({"power", "watt", "watts", "w"})
SECONDS = frozenset({"time", "duration", "elapsed", "latency", "runtime", "seconds", "secs"})
JOULES = frozenset({"energy", "joule", "joules", "j"})
#: Units by a word that tells one anywhere in a name, and by one that does at its end.
UNITS = {
    "uw": "uW", "mw": "mW", "kw": "kW", "milliwatt": "mW", "milliwatts": "mW", "kilowatt": "kW", "kilowatts": "kW",
    "\u00b5w": "uW", "mwatt": "mW", "mwatts": "mW", "kwatt": "kW", "kwatts": "kW",
    "mj": "mJ", "kj": "kJ", "wh": "Wh", "mwh": "mWh", "kwh": "kWh",
}  # fmt: skip
LAST_UNITS = frozenset({"s", "ms", "us", "ns"})
#: In units of W, J and s.
SIZES = {
    "uW": 1e-6, "mW": 1e-3, "W": 1.0, "kW": 1e3,
    "mJ": 1e-3, "J": 1.0, "kJ": 1e3, "mWh": 3.6, "Wh": 3600.0, "kWh": 3.6e6,
    "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0,
}  # fmt: skip


def words(name: str) -> Tuple[str, ...]:
    """The words of a name in any style: "coreF", "core_f" and "core/F" are all ("core", "f")."""
    return tuple(word.lower() for word in WORD.findall(name))


def unit(name: str) -> str:
    """W, J, Wh or s, with a prefix where the name has one; empty if it names none."""
    found = words(name)
    if found and found[-1] in LAST_UNITS:
        return found[-1]
    prefixed = [UNITS[word] for word in found if word in UNITS]
    if prefixed:
        return prefixed[-1]
    for symbol, known in (("J", JOULES), ("W", WATTS), ("s", SECONDS)):
        if not known.isdisjoint(found):
            return symbol
    return ""


def scale(given: str, wanted: str) -> Optional[float]:
    """How many of a unit are one of another; None where they are not of the same quantity."""
    if given == wanted or _quantity(given) == _quantity(wanted) != "":
        return SIZES.get(given, 1.0) / SIZES.get(wanted, 1.0)
    return None


def _quantity(symbol: str) -> str:
    return "" if symbol not in SIZES else "energy" if symbol[-1] in "Jh" else symbol[-1]
