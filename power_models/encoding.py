"""An encoder turns a table into a matrix, in the same way for fitting and for predicting."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from power_models.base import Unsuitable
from power_models.dataclass_json import Stored
from power_models.table import Floats, Table, is_numeric
from profilers.column_units import words

#: Positive columns whose greatest value is this many times the least are taken as logarithms.
LOG_SPAN = 4.0
#: The same for columns that hold zeros, of their values above zero.
LOG1P_SPAN = 100.0
#: Instructions executed and instructions a cycle, as NVIDIA's profilers name them.
INSTRUCTIONS = "inst_executed"
PER_CYCLE = ("executed_ipc", "ipc")
COUNTED = frozenset({"inst", "flop", "transactions", "cf", "warps"})


@dataclass(frozen=True)
class Numeric(Stored):
    """A scaled column: ``kind`` of x / unit, less its mean, over its standard deviation."""

    name: str
    kind: str
    unit: float
    mean: float
    stdev: float
    fill: float

    @classmethod
    def fit(cls, name: str, values: Floats, logs: bool) -> "Numeric | None":
        """None for a column that is empty or always the same."""
        known = values[np.isfinite(values)]
        if not known.size or known.min() == known.max():
            return None
        kind, unit = _kind(known) if logs else ("linear", 1.0)
        raw = cls(name, kind, unit, 0.0, 1.0, float(np.median(known)))
        scaled = raw.apply(values)
        return replace(raw, mean=float(scaled.mean()), stdev=float(scaled.std()) or 1.0)

    def apply(self, values: Floats) -> Floats:
        """Missing values become the median; a logarithm starts at a thousandth of the unit."""
        known = np.where(np.isfinite(values), values, self.fill) / self.unit
        if self.kind == "log":
            known = np.log(np.maximum(known, 1e-3))
        elif self.kind == "log1p":
            known = np.log1p(np.maximum(known, 0.0))
        return np.asarray((known - self.mean) / self.stdev, dtype=np.float64)


@dataclass(frozen=True)
class Encoder(Stored):
    """Standardised numbers, then one column of 0 and 1 a category; an unseen one is all zeros."""

    numeric: tuple[Numeric, ...]
    categories: Mapping[str, tuple[str, ...]]

    @classmethod
    def fit(cls, table: Table, logs: bool, needed: bool = True) -> "Encoder":
        """Learn from a table. Columns that never change, or repeat another, are dropped.

        logs: take the logarithm of columns that span orders of magnitude.
        Raises Unsuitable where no column is left and one is needed.
        """
        ready = per_cycle(table)
        numeric: list[Numeric] = []
        matrix: list[Floats] = []
        categories: dict[str, tuple[str, ...]] = {}
        for name, column in ready.columns.items():
            if not is_numeric(column):
                if len(found := np.unique(column)) > 1:
                    categories[name] = tuple(str(value) for value in found)
            elif (scaling := Numeric.fit(name, ready.numbers(name), logs)) is not None:
                scaled = scaling.apply(ready.numbers(name))
                if not any(np.array_equal(scaled, other) for other in matrix):
                    numeric.append(scaling)
                    matrix.append(scaled)
        if needed and not numeric and not categories:
            raise Unsuitable("no column changes")
        return cls(tuple(numeric), categories)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the matrix's columns."""
        texts = (f"{name} = {value}" for name, values in self.categories.items() for value in values)
        return (*(column.name for column in self.numeric), *texts)

    def matrix(self, table: Table) -> Floats:
        """(rows, columns) of numbers. Raises ValueError for a column that the table lacks."""
        used = per_cycle(table).only([*(column.name for column in self.numeric), *self.categories])
        blocks = [column.apply(used.numbers(column.name))[:, None] for column in self.numeric]
        for name, values in self.categories.items():
            blocks.append((used.columns[name][:, None] == np.array(values)[None, :]).astype(np.float64))
        return np.concatenate(blocks, axis=1) if blocks else np.zeros((table.rows, 0))


def per_cycle(table: Table) -> Table:
    """Divide counts of events by the cycles they were counted in, where the table tells the cycles.

    How often something happened says little of an unseen program, how often in a cycle does.
    cycles = inst_executed / executed_ipc, both of one multiprocessor's profile.
    """
    rate = next((name for name in PER_CYCLE if name in table.columns), None)
    if INSTRUCTIONS not in table.columns or rate is None:
        return table
    cycles = table.numbers(INSTRUCTIONS) / _above_zero(table.numbers(rate))
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


def _kind(known: Floats) -> tuple[str, float]:
    """How a column of finite numbers is scaled, and its unit."""
    above = known[known > 0]
    if known.min() < 0 or not above.size:
        return "linear", 1.0
    span = above.max() / above.min()
    if len(above) == len(known):
        return ("log", float(above.min())) if span >= LOG_SPAN else ("linear", 1.0)
    return ("log1p", float(np.median(above)) / 10) if span >= LOG1P_SPAN else ("linear", 1.0)
