"""Extremely randomised trees (Geurts et al. 2006) on the target's logarithm."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from power_models.base import Estimate, Regressor, Target
from power_models.encoding import Encoder
from power_models.forest import Forest
from power_models.table import Table

TREES = 200
OPTIONS = {"n_estimators": TREES, "max_features": 0.6, "random_state": 0}


@dataclass(frozen=True)
class Trees(Regressor):
    """The mean of randomised trees. Beyond what it was fitted on it stays at the nearest value."""

    name: ClassVar[str] = "trees"
    summary: ClassVar[str] = "extra-trees: averages similar rows, never extrapolates"

    encoder: Encoder
    forest: Forest

    @classmethod
    def fit(cls, table: Table, target: Target) -> Self:
        from sklearn.ensemble import ExtraTreesRegressor

        encoder = Encoder.fit(table, logs=True)
        found = ExtraTreesRegressor(**OPTIONS).fit(encoder.matrix(table), target.logs)
        return cls(encoder, Forest.of(found.estimators_))

    def predict(self, table: Table) -> Estimate:
        return Estimate.even(np.exp(self.forest.mean(self.encoder.matrix(table))))

    def describe(self) -> str:
        return f"{len(self.forest.roots)} trees, {len(self.forest.value)} nodes, {len(self.encoder.names)} columns"

    def to_json(self) -> dict[str, Any]:
        return {"encoder": self.encoder.to_json(), "forest": self.forest.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(Encoder.from_json(data["encoder"]), Forest.from_json(data["forest"]))
