"""Watts of switching circuits are idle plus terms of clock, voltage squared and utilisation.

V is nearly affine in f, so f·V² lies between f and f³. For utilisations u and clocks f, each over
its greatest value:

    watts = sum of weight · {1, u} · {1, f, f³},  all weights ≥ 0

Memory clocks come without f³: their voltage is fixed. A category is a utilisation of 0 or 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from power_models import columns
from power_models.base import Estimate, Regressor, Target, Unsuitable
from power_models.encoding import Encoder
from power_models.linear import nonnegative_weights
from power_models.table import Floats, Table, is_numeric
from profilers import column_units

#: Parts of a device whose clock and utilisation belong together.
PARTS = frozenset({"cpu", "gpu", "cp"})
#: Cost of a weight of one mean watt, in squared relative errors: among equals, small and many.
PENALTY = 0.01


@dataclass(frozen=True)
class Physical(Regressor):
    """Non-negative least squares of relative errors on idle, clock and utilisation terms."""

    name: ClassVar[str] = "physical"
    summary: ClassVar[str] = "idle + f·V² terms of clocks and utilisations, no negative weights"

    clocks: Mapping[str, float]
    encoder: Encoder
    floor: Floats
    span: Floats
    weights: Floats

    @classmethod
    def fit(cls, table: Table, target: Target) -> Self:
        target.require_power()
        clocks = _clocks(table)
        encoder = Encoder.fit(table.only(name for name in table.names if name not in clocks), logs=False, needed=False)
        matrix = encoder.matrix(table)
        floor = matrix.min(axis=0, initial=0.0)
        span = matrix.max(axis=0, initial=0.0) - floor
        draft = cls(clocks, encoder, floor, span, np.zeros(0))
        terms = draft.terms(table)
        mean_w = float(target.values.mean())
        penalty = np.sqrt(PENALTY) * np.eye(terms.shape[1])
        rows = np.vstack([terms * mean_w / target.values[:, None], penalty])
        wanted = np.concatenate([np.ones(table.rows), np.zeros(terms.shape[1])])
        weights = mean_w * nonnegative_weights(rows, wanted)
        return cls(clocks, encoder, floor, span, weights)

    def terms(self, table: Table) -> Floats:
        """(rows, terms), what the weights multiply."""
        powers = {name: _powers(name, table.numbers(name) / top) for name, top in self.clocks.items()}
        activity = (self.encoder.matrix(table) - self.floor) / self.span
        made = [np.ones(table.rows), *(term for each in powers.values() for term in each)]
        for i, name in enumerate(self.encoder.names):
            made.append(activity[:, i])
            made.extend(activity[:, i] * term for clock in _partners(name, powers) for term in powers[clock])
        return np.column_stack(made)

    def predict(self, table: Table) -> Estimate:
        return Estimate.even(self.terms(table) @ self.weights)

    def describe(self) -> str:
        used = int(np.count_nonzero(self.weights))
        return f"idle {self.weights[0]:.3g}, {used} of {len(self.weights)} terms of {', '.join(self.clocks)}"


def _clocks(table: Table) -> dict[str, float]:
    """Columns of clocks that change, with their greatest values."""
    found = {}
    for name, column in table.columns.items():
        values = table.numbers(name)
        if is_numeric(column) and columns.is_clock(name) and np.all(values > 0) and values.min() < values.max():
            found[name] = float(values.max())
    if not found:
        raise Unsuitable("there is no column of clocks (named frequency, clock, MHz or F) that changes")
    return found


def _powers(name: str, clock: Floats) -> list[Floats]:
    known = np.where(np.isfinite(clock), clock, 1.0)
    return [known] if columns.is_memory(name) else [known, known**3]


def _partners(activity: str, clocks: Mapping[str, object]) -> list[str]:
    """The clocks that a utilisation goes with: those of the same part, or all but the memory's."""
    found = set(column_units.words(activity))
    same = [name for name in clocks if not PARTS.isdisjoint(found & set(column_units.words(name)))]
    core = [name for name in clocks if not columns.is_memory(name)]
    memory = [name for name in clocks if columns.is_memory(name)] if columns.is_memory(activity) else []
    return (same or core) + memory
