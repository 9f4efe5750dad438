"""Names of columns tell clocks, limits and units, and names and values tell the features."""

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np

from power_models.table import Column, Floats, Ints, Table, is_numeric

WORD = re.compile(r"[mk](?:Wh|W|J)(?![A-Za-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
CLOCK = frozenset({"frequency", "freq", "clock", "clk", "hz", "khz", "mhz", "ghz", "f"})
MEMORY = frozenset({"mem", "memory", "emc", "dram", "drama", "ddr", "vram"})
LOAD = frozenset({"u", "util", "utilisation", "utilization", "usage", "busy"})
LIMIT = frozenset({"limit", "cap", "budget"})
WATTS = frozenset({"power", "watt", "watts", "w"})
SECONDS = frozenset({"time", "duration", "elapsed", "latency", "runtime", "seconds", "secs"})
JOULES = frozenset({"energy", "joule", "joules", "j", "wh"})
#: What a run is found to take, besides its watts, joules and seconds.
OUTCOME = WATTS | SECONDS | JOULES | {"timestamp", "date", "edp"}
#: What says that a column with such a name was set before the run.
SETTING = LIMIT | {"tdp", "mode", "state", "idle"}
#: Units, where they are the last word of a name.
UNITS = frozenset({"mw", "kw", "mj", "kj", "wh", "mwh", "kwh", "s", "ms", "us", "ns"})
#: Names of quantities that somebody set, in whole numbers.
QUANTITY = (
    CLOCK
    | LIMIT
    | LOAD
    | frozenset(
        {"batch", "size", "nodes", "node", "workers", "gpus", "gpu", "cores", "threads", "count", "num", "n", "steps"}
        | {"rate", "epochs", "layers", "width", "depth", "length", "level"}
    )
)
#: Names of numbers that only tell rows apart.
IDENTIFIER = frozenset({"id", "ids", "index", "idx", "run", "job", "no", "number", "group", "fold", "seed"})
#: Columns of more categories than this are taken for identifiers.
MOST_CATEGORIES = 64


class Choice(NamedTuple):
    """The columns to fit on, and why each of the others is left out."""

    features: tuple[str, ...]
    left_out: Mapping[str, str]


def words(name: str) -> tuple[str, ...]:
    """The words of a name in any style: "coreF", "core_f" and "core/F" are all ("core", "f")."""
    return tuple(word.lower() for word in WORD.findall(name))


def is_clock(name: str) -> bool:
    return not CLOCK.isdisjoint(words(name))


def is_memory(name: str) -> bool:
    return not MEMORY.isdisjoint(words(name))


def is_load(name: str) -> bool:
    """Whether a column holds how busy a part of the device was; memory in use is no such part."""
    return not LOAD.isdisjoint(words(name)) and not is_memory(name)


def is_limit(name: str) -> bool:
    """Whether a column holds a limit that was set on the watts."""
    found = words(name)
    return not LIMIT.isdisjoint(found) and not (WATTS | {"mw", "kw"}).isdisjoint(found)


def is_outcome(name: str) -> bool:
    """Whether a column seems to hold what came out of a run: its time, watts or joules."""
    found = words(name)
    return SETTING.isdisjoint(found) and (not OUTCOME.isdisjoint(found) or found[-1:] in {(u,) for u in UNITS})


def unit(name: str) -> str:
    """W, J, Wh or s, with a prefix where the name ends in one; empty if it names none."""
    found = words(name)
    last = found[-1] if found else ""
    if last in UNITS:
        return last.replace("w", "W").replace("j", "J")
    for symbol, known in (("J", JOULES), ("W", WATTS), ("s", SECONDS)):
        if not known.isdisjoint(found):
            return symbol
    return ""


def is_constant(column: Column) -> bool:
    """Whether every row has the same value, none missing."""
    if is_numeric(column):
        values = np.asarray(column, dtype=np.float64)
        return bool(values.size and np.isfinite(values).all() and values.min() == values.max())
    return len(np.unique(column)) == 1


def choose(table: Table, target: str, groups: Ints, grouped_by: Collection[str] = ()) -> Choice:
    """The default features: all columns that can help and are no outcomes of the same run.

    groups: one number a row.
    grouped_by: the columns that the groups were made of.
    """
    left_out = {}
    for name, column in table.columns.items():
        if name != target and (reason := _reason(name, column, groups, name in grouped_by)):
            left_out[name] = reason
    return Choice(tuple(name for name in table.names if name != target and name not in left_out), left_out)


def _reason(name: str, column: Column, groups: Ints, groups_rows: bool) -> str:
    """Why a column is no feature; empty for one that is."""
    if is_outcome(name):
        return "seems to be an outcome of the run"
    if is_constant(column):
        return "always the same"
    if is_numeric(column):
        return _numeric_reason(name, np.asarray(column, dtype=np.float64), groups, groups_rows)
    return _text_reason(column, groups)


def _numeric_reason(name: str, values: Floats, groups: Ints, groups_rows: bool) -> str:
    known = values[np.isfinite(values)]
    if not known.size:
        return "empty"
    if known.min() == known.max():
        return "always the same"
    return "numbers the groups; name it with --features if it is a quantity" * _is_identifier(
        name, values, groups, groups_rows
    )


def _is_identifier(name: str, values: Floats, groups: Ints, groups_rows: bool) -> bool:
    """Whether integers only tell one group from another, one number a group.

    The column that the groups were made of is one unless its name is that of a quantity. Another
    column is one if its numbers are consecutive or its name says so.
    """
    distinct, codes = np.unique(values, return_inverse=True)
    whole = bool(np.isfinite(distinct).all() and (distinct == np.round(distinct)).all())
    combinations = len(np.unique(np.stack([codes, groups], axis=1), axis=0))
    count = len(np.unique(groups))
    if not whole or count == len(values) or not len(distinct) == combinations == count:
        return False
    if groups_rows:
        return QUANTITY.isdisjoint(words(name))
    dense = bool(distinct[-1] - distinct[0] + 1 == len(distinct)) and QUANTITY.isdisjoint(words(name))
    return dense or not IDENTIFIER.isdisjoint(words(name))


def _text_reason(column: Column, groups: Ints) -> str:
    """A text that occurs in one group only tells nothing of a group that is held out."""
    values, codes = np.unique(column, return_inverse=True)
    if len(values) > MOST_CATEGORIES:
        return f"more than {MOST_CATEGORIES} different texts"
    pairs = np.unique(np.stack([codes, groups], axis=1), axis=0)
    shared = np.bincount(pairs[:, 0], minlength=len(values)) > 1
    return "" if shared[codes].mean() >= 0.5 else "its texts hardly occur in more than one group"
