"""Linear regression without negative weights: no counter that goes up makes a device draw less."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from power_models.base import Estimate, Regressor, Target, Unsuitable
from power_models.encoding import Encoder
from power_models.table import Floats, Table

#: Steps of the search for weights, for each of them.
STEPS = 30


@dataclass(frozen=True)
class NonNegative(Regressor):
    """watts = idle + sum of weight times (counter - least of it), all weights and idle ≥ 0, relative errors."""

    name: ClassVar[str] = "nonnegative"
    summary: ClassVar[str] = "linear without negative weights, relative errors"

    encoder: Encoder
    floor: Floats
    weights: Floats
    idle: float

    @classmethod
    def fit(cls, table: Table, target: Target) -> Self:
        target.require_power()
        encoder = Encoder.fit(table, logs=False)
        matrix = encoder.matrix(table)
        floor = matrix.min(axis=0, initial=0.0)
        terms = np.column_stack([np.ones(table.rows), matrix - floor])
        weights = solved(terms / target.values[:, None], np.ones(table.rows))
        return cls(encoder, floor, weights[1:], float(weights[0]))

    def predict(self, table: Table) -> Estimate:
        return Estimate.even(self.idle + (self.encoder.matrix(table) - self.floor) @ self.weights)

    def describe(self) -> str:
        used = int(np.count_nonzero(self.weights))
        return f"{self.idle:.3g} at the least counters, {used} of {len(self.weights)} weights above zero"

    def to_json(self) -> dict[str, Any]:
        data = {"encoder": self.encoder.to_json(), "idle": self.idle}
        return {**data, "floor": self.floor.tolist(), "weights": self.weights.tolist()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        floor, weights = (np.array(data[key], dtype=np.float64) for key in ("floor", "weights"))
        return cls(Encoder.from_json(data["encoder"]), floor, weights, data["idle"])


def solved(terms: Floats, wanted: Floats) -> Floats:
    """Weights ≥ 0 whose sum of terms is nearest to what is wanted. Raises Unsuitable where they are not found."""
    from scipy.optimize import nnls

    try:
        weights = nnls(terms, wanted, maxiter=STEPS * terms.shape[1])[0]
    except RuntimeError:
        raise Unsuitable("its non-negative least squares do not end") from None
    return np.asarray(weights, dtype=np.float64)
