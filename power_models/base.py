"""A power model fits, predicts with an interval and describes itself; ``model_file`` saves it."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from power_models import columns
from power_models.dataclass_json import Stored
from power_models.table import Column, Floats, Table, is_numeric
from profilers import column_units

#: Share of unseen points that an interval is to hold.
LEVEL = 0.9
#: Predictions stay between the least value fitted on over this and the greatest times this.
BEYOND = 2.0
#: A target of unknown unit that spans more than this is taken as its logarithm.
WIDE = 20.0


class Unsuitable(ValueError):
    """A model needs something that a table does not have; the message says what."""


class Target(NamedTuple):
    """What to predict: a column's name and its values, all above zero."""

    name: str
    values: Floats

    @property
    def log(self) -> bool:
        """Whether linear models fit its logarithm: times and joules multiply, watts add up."""
        if unit := column_units.unit(self.name):
            return not unit.endswith("W")
        return bool(self.values.max() > WIDE * self.values.min())

    @property
    def logs(self) -> Floats:
        return np.log(self.values)

    def require_power(self) -> None:
        """Raises Unsuitable for times and joules, which are no sums of parts."""
        if self.log:
            raise Unsuitable(f"{self.name} is no power: it is no sum of parts")


class Estimate(NamedTuple):
    """Predicted values in the target's unit, and the relative widths of their intervals."""

    values: Floats
    spread: Floats

    @classmethod
    def even(cls, values: Floats) -> "Estimate":
        """Intervals of equal relative width."""
        return cls(values, np.ones(len(values)))


class Regressor(Stored, ABC):
    """A kind of model. An instance is fitted."""

    name: ClassVar[str]
    summary: ClassVar[str]

    @classmethod
    @abstractmethod
    def fit(cls, table: Table, target: Target) -> Self:
        """Fit on all columns of a table. Raises Unsuitable."""

    @abstractmethod
    def predict(self, table: Table) -> Estimate:
        """One value a row."""

    @abstractmethod
    def describe(self) -> str:
        """What was learned, in a line."""


class Range(NamedTuple):
    """The values that a column was fitted on: from least to greatest, or categories (then NaN)."""

    name: str
    least: float
    greatest: float
    categories: tuple[str, ...]

    @classmethod
    def of(cls, name: str, column: Column) -> "Range":
        if not is_numeric(column):
            return cls(name, math.nan, math.nan, tuple(str(value) for value in np.unique(column)))
        known = column[np.isfinite(np.asarray(column, dtype=np.float64))]
        return cls(name, float(known.min()), float(known.max()), ()) if known.size else cls(name, 0.0, 0.0, ())

    def outside(self, table: Table) -> list[bool]:
        """For each row whether its value lies outside, is missing or was never seen."""
        if self.categories:
            return [str(value) not in self.categories for value in table.columns[self.name]]
        values = table.numbers(self.name)
        slack = 1e-9 * max(abs(self.least), abs(self.greatest))
        return [bool(x) for x in ~((values >= self.least - slack) & (values <= self.greatest + slack))]

    @property
    def text(self) -> str:
        """The range in words, for messages."""
        if self.categories:
            return ", ".join(self.categories)
        return f"{self.least:g}" if self.least == self.greatest else f"{self.least:g} to {self.greatest:g}"


def constants(table: Table, features: Iterable[str]) -> tuple[Range, ...]:
    """Columns that never change and are no features: nothing was learned of another value.

    Outcomes of the run and columns with missing numbers are left out.
    """
    used = set(features)
    return tuple(
        Range.of(name, column)
        for name, column in table.columns.items()
        if name not in used and columns.is_constant(column) and not columns.is_outcome(name)
    )


class IntervalPrediction(NamedTuple):
    """Values with their intervals.

    extrapolated: for each row the columns in which it lies outside of what was fitted on.
    """

    values: Floats
    low: Floats
    high: Floats
    extrapolated: list[tuple[str, ...]]


@dataclass(frozen=True, kw_only=True)
class PowerModel:
    """A fitted regressor; its target ranged from ``least`` to ``greatest``.

    ranges: of the features, which a prediction needs.
    width: half an interval's width, a logarithm; NaN where it is unknown.
    about: how it was fitted, for people.
    constants: columns that had one value in training; another value, where given, is extrapolation.
    """

    regressor: Regressor
    target: str
    rows: int
    ranges: tuple[Range, ...]
    least: float
    greatest: float
    width: float = math.nan
    about: Mapping[str, Any] = field(default_factory=dict)
    constants: tuple[Range, ...] = ()

    @classmethod
    def fit(
        cls, kind: type[Regressor], table: Table, target: Target, width: float = math.nan,
        about: Mapping[str, Any] | None = None,
    ) -> Self:  # fmt: skip
        """On every column of a table. Raises Unsuitable where that lacks what the kind needs."""
        ranges = tuple(Range.of(name, column) for name, column in table.columns.items())
        least, greatest = float(target.values.min()), float(target.values.max())
        return cls(
            regressor=kind.fit(table, target), target=target.name, rows=table.rows, ranges=ranges, least=least,
            greatest=greatest, width=width, about=about or {},
        )  # fmt: skip

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.ranges)

    @property
    def unit(self) -> str:
        return column_units.unit(self.target)

    @property
    def name(self) -> str:
        """The name of its kind."""
        return self.regressor.name

    def guess(self, table: Table) -> Estimate:
        """Values alone, kept near those fitted on. Raises ValueError where a feature is missing."""
        values, spread = self.regressor.predict(table.only(self.features))
        return Estimate(np.clip(values, self.least / BEYOND, self.greatest * BEYOND), spread)

    def predict(self, table: Table) -> IntervalPrediction:
        """Values with 90 % intervals (NaN where the model was never held against unseen points).

        Raises ValueError where a feature is missing.
        """
        values, spread = self.guess(table)
        factor = np.exp(self.width * spread)
        known = [*self.ranges, *(each for each in self.constants if each.name in table.columns)]
        flags = [(each.name, each.outside(table)) for each in known]
        extrapolated = [tuple(name for name, flag in flags if flag[row]) for row in range(table.rows)]
        return IntervalPrediction(values, values / factor, values * factor, extrapolated)

    def describe(self) -> str:
        """The model in a line: its kind, from how many rows, and what it learned."""
        title = f"{self.target} [{self.unit}]" if self.unit else self.target
        return f"{title} by {self.name}, {self.rows} rows: {self.regressor.describe()}"
