"""Linear regression, the paper's Eq. 1: watts = intercept + sum of weight times counter (Gu et al.)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from power_models.base import Estimate, Regressor, Target
from power_models.encoding import Encoder
from power_models.table import Floats, Table

#: Terms that a description shows.
SHOWN = 5


@dataclass(frozen=True)
class Linear(Regressor):
    """Ordinary least squares with an intercept, on standardised columns."""

    name: ClassVar[str] = "linear"
    summary: ClassVar[str] = "ordinary least squares with an intercept (the paper's Eq. 1)"

    encoder: Encoder
    weights: Floats
    intercept: float
    log: bool

    @classmethod
    def fit(cls, table: Table, target: Target) -> Self:
        encoder = Encoder.fit(table, logs=target.log)
        found = cls.solver(encoder.matrix(table), target)
        return cls(encoder, np.asarray(found.coef_, dtype=np.float64), float(found.intercept_), target.log)

    @classmethod
    def solver(cls, matrix: Floats, target: Target) -> Any:
        """A fitted linear model of scikit-learn."""
        from sklearn.linear_model import LinearRegression

        return LinearRegression().fit(matrix, target.logs if target.log else target.values)

    def predict(self, table: Table) -> Estimate:
        values = self.intercept + self.encoder.matrix(table) @ self.weights
        return Estimate.even(np.exp(values) if self.log else values)

    def describe(self) -> str:
        order = np.argsort(-np.abs(self.weights), kind="stable")[:SHOWN]
        terms = (f"{self.weights[i]:+.3g} {self.encoder.names[i]}" for i in order)
        more = " …" if len(self.weights) > SHOWN else ""
        return f"{'log of ' if self.log else ''}{self.intercept:.3g} {' '.join(terms)}{more} (standardised)"

    def to_json(self) -> dict[str, Any]:
        data = {"encoder": self.encoder.to_json(), "weights": self.weights.tolist()}
        return {**data, "intercept": self.intercept, "log": self.log}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        weights = np.array(data["weights"], dtype=np.float64)
        return cls(Encoder.from_json(data["encoder"]), weights, data["intercept"], data["log"])
