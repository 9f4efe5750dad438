"""Counts per cycle: how often something happened says little of an unseen program, how often a cycle does."""

import numpy as np

from power_models.columns import words
from power_models.table import Floats, Table, is_numeric

#: Instructions executed and instructions a cycle, as NVIDIA's profilers name them.
INSTRUCTIONS = ("inst_executed",)
PER_CYCLE = ("executed_ipc", "ipc")
COUNTED = frozenset({"inst", "flop", "transactions", "cf", "warps"})


def per_cycle(table: Table) -> Table:
    """The same columns, counts divided by the cycles they were counted in, where the table tells the cycles.

    cycles = inst_executed / executed_ipc, both of one multiprocessor's profile; without them the table is returned
    as it is.
    """
    instructions = next((name for name in INSTRUCTIONS if name in table.columns), None)
    rate = next((name for name in PER_CYCLE if name in table.columns), None)
    if instructions is None or rate is None:
        return table
    cycles = table.numbers(instructions) / _above_zero(table.numbers(rate))
    columns = dict(table.columns)
    for name, column in table.columns.items():
        if _is_count(name) and is_numeric(column):
            columns[name] = table.numbers(name) / _above_zero(cycles)
    return Table(columns)


def _is_count(name: str) -> bool:
    found = words(name)
    return "per" not in found and not COUNTED.isdisjoint(found)


def _above_zero(values: Floats) -> Floats:
    return np.where(values > 0, values, np.nan)
