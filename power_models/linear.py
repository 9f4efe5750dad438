"""Linear models add up counters, by least squares; the mean of all rows is what to beat."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from power_models.base import Estimate, Regressor, Target, Unsuitable
from power_models.encoding import Encoder
from power_models.table import Floats, Table

#: Terms that a description shows.
SHOWN = 5
#: Iterations of the non-negative solver, for each weight.
SOLVER_ITERATIONS = 30


@dataclass(frozen=True)
class Mean(Regressor):
    """The same value for every row: what a model must beat to be of use."""

    name: ClassVar[str] = "mean"
    summary: ClassVar[str] = "the mean of all rows, whatever the features: what the others must beat"

    value: float

    @classmethod
    def fit(cls, table: Table, target: Target) -> Self:
        """Of times and joules the geometric mean."""
        return cls(float(np.exp(target.logs.mean()) if target.log else target.values.mean()))

    def predict(self, table: Table) -> Estimate:
        return Estimate.even(np.full(table.rows, self.value))

    def describe(self) -> str:
        return f"always {self.value:.3g}"


@dataclass(frozen=True)
class Linear(Regressor):
    """The paper's Eq. 1 (Gu et al.): intercept + sum of weight times standardised counter."""

    name: ClassVar[str] = "linear"
    summary: ClassVar[str] = "ordinary least squares with an intercept (the paper's Eq. 1)"

    encoder: Encoder
    weights: Floats
    intercept: float
    log: bool

    @classmethod
    def fit(cls, table: Table, target: Target) -> Self:
        from sklearn.linear_model import LinearRegression

        encoder = Encoder.fit(table, logs=target.log)
        found = LinearRegression().fit(encoder.matrix(table), target.logs if target.log else target.values)
        return cls(encoder, np.asarray(found.coef_, dtype=np.float64), float(found.intercept_), target.log)

    def predict(self, table: Table) -> Estimate:
        values = self.intercept + self.encoder.matrix(table) @ self.weights
        return Estimate.even(np.exp(values) if self.log else values)

    def describe(self) -> str:
        order = np.argsort(-np.abs(self.weights), kind="stable")[:SHOWN]
        terms = (f"{self.weights[i]:+.3g} {self.encoder.names[i]}" for i in order)
        more = " …" if len(self.weights) > SHOWN else ""
        return f"{'log of ' if self.log else ''}{self.intercept:.3g} {' '.join(terms)}{more} (standardised)"


def nonnegative_weights(terms: Floats, goal: Floats) -> Floats:
    """Weights ≥ 0 whose sum of terms is nearest to the goal. Raises Unsuitable."""
    from scipy.optimize import nnls

    try:
        weights = nnls(terms, goal, maxiter=SOLVER_ITERATIONS * terms.shape[1])[0]
    except RuntimeError:
        raise Unsuitable("its non-negative least squares do not converge") from None
    return np.asarray(weights, dtype=np.float64)
