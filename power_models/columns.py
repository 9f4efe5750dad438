"""Names of columns tell clocks, limits and units, and names and values tell the features."""

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np

from power_models.table import Column, Floats, Ints, Table, is_numeric
from profilers.column_units import JOULES, LAST_UNITS, SECONDS, UNITS, WATTS, words

CLOCK = frozenset({"frequency", "freq", "clock", "clk", "hz", "khz", "mhz", "ghz", "f"})
MEMORY = frozenset({"mem", "memory", "emc", "dram", "drama", "ddr", "vram"})
LOAD = frozenset({"u", "util", "utilisation", "utilization", "usage", "busy"})
LIMIT = frozenset({"limit", "cap", "budget"})
#: What a run is found to take, besides its watts, joules and seconds.
OUTCOME = WATTS | SECONDS | JOULES | UNITS.keys() | {"timestamp", "date", "edp"}
#: What says that a column with such a name was set before the run.
SETTING = LIMIT | {"tdp", "mode", "state", "idle"}
#: Names of quantities that somebody set, in whole numbers.
QUANTITY = CLOCK | LIMIT | LOAD | {
    "batch", "size", "nodes", "node", "workers", "gpus", "gpu", "cores", "threads", "count", "num", "n", "steps",
    "rate", "epochs", "layers", "width", "depth", "length", "level",
}  # fmt: skip
#: Names of numbers that only tell rows apart.
IDENTIFIER = frozenset({"id", "ids", "index", "idx", "run", "job", "no", "number", "group", "fold", "seed"})
#: Names of a column without one, here and as pandas writes them.
_UNNAMED = re.compile(r"(\.\d+)?|Unnamed: \d+(\.\d+)?")
#: Columns of more categories than this are taken for identifiers.
MOST_CATEGORIES = 64


class Choice(NamedTuple):
    """The columns to fit on, and why each of the others is left out."""

    features: tuple[str, ...]
    left_out: Mapping[str, str]


def is_clock(name: str) -> bool:
    return not CLOCK.isdisjoint(words(name))


def is_memory(name: str) -> bool:
    return not MEMORY.isdisjoint(words(name))


def is_load(name: str) -> bool:
    """Whether a column holds how busy a part of the device was; memory in use is no such part."""
    return not LOAD.isdisjoint(words(name)) and not is_memory(name)


def is_outcome(name: str) -> bool:
    """Whether a column seems to hold what came out of a run: its time, watts or joules."""
    found = words(name)
    return SETTING.isdisjoint(found) and not (OUTCOME.isdisjoint(found) and LAST_UNITS.isdisjoint(found[-1:]))


def is_constant(column: Column) -> bool:
    """Whether every row has the same value, none missing."""
    return len(np.unique(column)) == 1 and not (is_numeric(column) and np.isnan(np.asarray(column, float)).any())


def choose(table: Table, target: str, groups: Ints, grouped_by: Collection[str] = ()) -> Choice:
    """The default features: all columns that can help and are no outcomes of the same run.

    groups: one number a row.
    grouped_by: the columns that the groups were made of.
    """
    others = {name: column for name, column in table.columns.items() if name != target}
    reasons = {name: _reason(name, column, groups, name in grouped_by) for name, column in others.items()}
    left_out = {name: reason for name, reason in reasons.items() if reason}
    return Choice(tuple(name for name in others if name not in left_out), left_out)


def _reason(name: str, column: Column, groups: Ints, groups_rows: bool) -> str:
    """Why a column is no feature; empty for one that is."""
    if _UNNAMED.fullmatch(name):
        return "has no name, like the numbers of rows that pandas writes; name it if it is a quantity"
    if is_outcome(name):
        return "seems to be an outcome of the run"
    values = np.unique(column)
    if is_numeric(column):
        values = values[np.isfinite(np.asarray(values, float))]
    if not len(values):
        return "empty"
    if len(values) == 1:
        return "always the same"
    if is_numeric(column):
        numbers = _is_identifier(name, np.asarray(column, float), groups, groups_rows)
        return "numbers the groups; name it with --features if it is a quantity" if numbers else ""
    if len(values) > MOST_CATEGORIES:
        return f"more than {MOST_CATEGORIES} different texts"
    return "" if _is_shared(column, groups) else "its texts hardly occur in more than one group"


def _is_identifier(name: str, values: Floats, groups: Ints, groups_rows: bool) -> bool:
    """Whether integers only tell one group from another, one number a group.

    The column that the groups were made of is one unless its name is that of a quantity. Another
    column is one if its numbers are consecutive or its name says so.
    """
    distinct, codes = np.unique(values, return_inverse=True)
    whole = bool(np.isfinite(distinct).all() and (distinct == np.round(distinct)).all())
    combinations, count = len(set(zip(codes, groups, strict=True))), len(np.unique(groups))
    if not whole or count == len(values) or not len(distinct) == combinations == count:
        return False
    named = set(words(name))
    dense = bool(distinct[-1] - distinct[0] + 1 == len(distinct))
    if not groups_rows and not IDENTIFIER.isdisjoint(named):
        return True
    return (groups_rows or dense) and QUANTITY.isdisjoint(named)


def _is_shared(column: Column, groups: Ints) -> bool:
    """Whether most texts occur in several groups; others tell nothing of a group held out."""
    values, codes = np.unique(column, return_inverse=True)
    pairs = np.unique(np.stack([codes, groups], axis=1), axis=0)
    shared = np.bincount(pairs[:, 0], minlength=len(values)) > 1
    return bool(shared[codes].mean() >= 0.5)
