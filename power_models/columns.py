"""What the names of columns tell: clocks, limits, units, and what may be a feature."""

import re
from collections.abc import Mapping
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
    """W, J, Wh or s, with a prefix where the name ends in one; empty where the name does not tell."""
    found = words(name)
    last = found[-1] if found else ""
    if last in UNITS:
        return last.replace("w", "W").replace("j", "J")
    for symbol, known in (("J", JOULES), ("W", WATTS), ("s", SECONDS)):
        if not known.isdisjoint(found):
            return symbol
    return ""


def choose(table: Table, target: str, groups: Ints) -> Choice:
    """The default features: every column but those that cannot help, or are outcomes of the same run.

    A text column helps where its values are found in several groups; in one group only, they tell nothing of a
    group that is held out. groups: one number a row.
    """
    left_out = {}
    for name, column in table.columns.items():
        if name != target and (reason := _reason(name, column, groups)):
            left_out[name] = reason
    return Choice(tuple(name for name in table.names if name != target and name not in left_out), left_out)


def _reason(name: str, column: Column, groups: Ints) -> str:
    if is_outcome(name):
        return "seems to be an outcome of the run"
    if is_numeric(column):
        return _numeric_reason(np.asarray(column, dtype=np.float64))
    values, codes = np.unique(column, return_inverse=True)
    if len(values) < 2:
        return "always the same"
    if len(values) > MOST_CATEGORIES:
        return f"more than {MOST_CATEGORIES} different texts"
    pairs = np.unique(np.stack([codes, groups], axis=1), axis=0)
    shared = np.bincount(pairs[:, 0], minlength=len(values)) > 1
    return "" if shared[codes].mean() >= 0.5 else "its texts hardly occur in more than one group"


def _numeric_reason(values: Floats) -> str:
    known = values[np.isfinite(values)]
    if not known.size:
        return "empty"
    return "always the same" if known.min() == known.max() else ""
