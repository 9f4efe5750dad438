"""``NAME:key=value,...``: how a person chooses something by name, and what is said where that does not fit."""

from typing import Any, Callable, Dict, Mapping, Tuple


def named(
    what: str, text: str, options: Mapping[str, Mapping[str, Callable[[str], Any]]]
) -> Tuple[str, Dict[str, Any]]:
    """The name and the values of ``NAME:key=value,...``; options: by name its keys and what reads their values.

    Raises ValueError for a name, a key or a value that does not fit, with those that do.
    """
    name, _, rest = text.partition(":")
    if name not in options:
        raise ValueError("unknown %s %r; known: %s" % (what, name, ", ".join(sorted(options))))
    values: Dict[str, Any] = {}
    for term in rest.split(",") if rest else ():
        key, _, value = term.partition("=")
        if key not in options[name] or key in values:
            keys = ", ".join(sorted(options[name])) or "none"
            raise ValueError("%s %r: %r has no known key, or one given twice; keys: %s" % (what, text, term, keys))
        try:
            values[key] = options[name][key](value)
        except ValueError as error:
            raise ValueError("%s %r: %s: %s" % (what, text, key, error)) from error
    return name, values
