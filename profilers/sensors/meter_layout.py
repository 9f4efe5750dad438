"""Which column of a meter's log holds the watts, and in which unit: by the names above. Pure."""

from typing import NamedTuple, Optional, Sequence

from profilers import column_units
from profilers.file_tree import Unavailable

#: Words of a name that speak of something else than watts, even beside "power" or "W".
_NEVER_WATTS = frozenset((
    "va", "kva", "var", "kvar", "apparent", "reactive", "factor", "percent", "limit", "cap", "hour", "hours",
    "megawatt", "megawatts", "cost",
))  # fmt: skip
#: Words that do so alone: "current power" is one of watts.
_OTHERS = frozenset((
    "voltage", "volt", "volts", "v", "mv", "spannung", "current", "amp", "amps", "ampere", "amperes", "a", "ma",
    "strom", "energie", "h", "ah", "mah", "pf", "temperature", "temp", "celsius", "frequency", "hz", "humidity",
))  # fmt: skip


class LogLayout(NamedTuple):
    """Of a log: how many columns it has, which one holds the watts, and their unit."""

    columns: int
    watts_at: int
    unit: str


WITHOUT_HEADER = LogLayout(2, 1, "W")


def layout(names: Sequence[str], column: Optional[str]) -> LogLayout:
    """Of a log with these names of columns, none without a header.

    column: the name of the watts; None: the second one.
    Raises Unavailable where that is missing, in doubt or named for something else.
    """
    if not names and column is not None:
        raise Unavailable("the log has no header, so no column %r" % column)
    if len(names) < 2:
        return WITHOUT_HEADER
    count = len(names) - (names[-1] == "")
    if column is None and sum(map(_is_of_watts, names)) > 1:
        raise Unavailable("the log has several columns of watts; name one by column=, of %s" % ", ".join(names))
    at = 1 if column is None else _index(names, column)
    unit = _unit(names[at])
    if unit is None or (column is None and count > 2 and column_units.unit(names[at]) == ""):
        raise Unavailable(
            "the log's column %r may hold no watts; name that of the watts by column=, of %s"
            % (names[at], ", ".join(names))
        )
    return LogLayout(count, at, unit)


def holds_numbers(name: str) -> bool:
    """Whether a column of this name holds numbers of its own, and not the rest of others."""
    return column_units.unit(name) != "" or not _OTHERS.isdisjoint(column_units.words(name))


def _index(names: Sequence[str], column: str) -> int:
    lower = [name.lower() for name in names]
    if lower.count(column.lower()) != 1:
        count = "several columns" if column.lower() in lower else "no column"
        raise Unavailable("the log has %s %r but %s" % (count, column, ", ".join(names)))
    return lower.index(column.lower())


def _is_of_watts(name: str) -> bool:
    return column_units.unit(name) != "" and _unit(name) is not None


def _unit(name: str) -> Optional[str]:
    """The unit of watts in a name, W for an unknown name; None where it is of something else."""
    found, unit = frozenset(column_units.words(name)), column_units.unit(name)
    others = _NEVER_WATTS if unit else _NEVER_WATTS | _OTHERS
    if not others.isdisjoint(found) or "MW" in name or "%" in name:
        return None
    return "W" if unit == "" else unit if column_units.scale(unit, "W") is not None else None
