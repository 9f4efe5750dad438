"""The text ``NAME:key=value,...`` is split into a name and typed options."""

import difflib
import math
from typing import Any, Callable, Dict, Iterable, Mapping, Optional, Sequence


def one_of(what: str, name: str, known: Iterable[str]) -> str:
    """``name``, if it is known. Raises ValueError with the nearest and all known names."""
    names = list(known)
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1)
        hint = "did you mean %s? " % near[0] if near else ""
        raise ValueError("unknown %s %r; %sknown: %s" % (what, name, hint, ", ".join(names)))
    return name


def name_of(what: str, text: str, known: Iterable[str]) -> str:
    """The NAME of ``NAME:key=value,...``. Raises ValueError as ``one_of`` does."""
    return one_of(what, text.partition(":")[0], known)


def options_of(text: str, keys: Optional[Sequence[str]] = None) -> Dict[str, str]:
    """The options of ``NAME:key=value,...``, as texts.

    keys: all keys, where values may have options of their own. An item with another key then
    belongs to the value before it, as in ``groups:between=random:segments=4,count=2``.
    Raises ValueError for an item that is not key=value, an unknown key, or one that is given twice.
    """
    _, colon, rest = text.partition(":")
    found: Dict[str, str] = {}
    last = ""
    for item in rest.split(",") if colon else ():
        key, _, value = item.partition("=")
        if keys is not None and key not in keys:
            if ":" not in found.get(last, ""):
                raise ValueError("%s: %r is not key=value with a key of %s" % (text, item, ", ".join(keys) or "none"))
            found[last] += "," + item
        elif not key or not value:
            raise ValueError("%s: %r is not of the form key=value" % (text, item))
        elif key in found:
            raise ValueError("%s: %s is given twice" % (text, key))
        else:
            found[key] = value
            last = key
    return found


def typed(what: str, options: Mapping[str, str], readers: Mapping[str, Callable[[str], Any]]) -> Dict[str, Any]:
    """The parsed values of options. Raises ValueError for unknown ones, or where a reader does."""
    unknown = [key for key in options if key not in readers]
    if unknown:
        known = ", ".join(sorted(readers)) or "none"
        raise ValueError("%s has no option %s; known: %s" % (what, ", ".join(unknown), known))
    found = {}
    for key, text in options.items():
        try:
            found[key] = readers[key](text)
        except ValueError as error:
            raise ValueError("%s: %s is %s, not %r" % (what, key, error, text)) from None
    return found


def word_of(known: Sequence[str]) -> Callable[[str], str]:
    """A reader of one of these words."""

    def read(text: str) -> str:
        if text not in known:
            near = difflib.get_close_matches(text, known, n=1)
            raise ValueError("one of %s%s" % (", ".join(known), "".join(" (did you mean %s?)" % each for each in near)))
        return text

    return read


def whole_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("a whole number") from None


def whole_from(least: int) -> Callable[[str], int]:
    """A reader of whole numbers that are no less."""

    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise ValueError("a whole number from %d on" % least)
        return int(text)

    return read


count = whole_from(0)


def number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("a number") from None


def positive(text: str) -> float:
    value = number(text)
    if not 0.0 < value < math.inf:
        raise ValueError("a finite number above 0")
    return value


def below_one(text: str) -> float:
    value = number(text)
    if not 0.0 <= value < 1.0:
        raise ValueError("a number from 0 to below 1")
    return value


def yes_or_no(text: str) -> bool:
    if text not in ("yes", "no"):
        raise ValueError("yes or no")
    return text == "yes"
