"""Gradient-boosted trees (Friedman 2001) on the target's logarithm."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from power_models.base import Estimate, Regressor, Target
from power_models.encoding import Encoder
from power_models.forest import Forest
from power_models.table import Table

RATE = 0.05
OPTIONS = {
    "n_estimators": 300, "learning_rate": RATE, "max_depth": 4, "min_samples_leaf": 3, "subsample": 0.7,
    "max_features": 0.4, "random_state": 0,
}  # fmt: skip


@dataclass(frozen=True)
class Boosted(Regressor):
    """start + rate · sum of small trees, each fitted to what those before it left over."""

    name: ClassVar[str] = "boosted"
    summary: ClassVar[str] = "gradient-boosted trees"

    encoder: Encoder
    forest: Forest
    start: float
    rate: float

    @classmethod
    def fit(cls, table: Table, target: Target) -> Self:
        from sklearn.ensemble import GradientBoostingRegressor

        encoder = Encoder.fit(table, logs=True)
        found = GradientBoostingRegressor(**OPTIONS).fit(encoder.matrix(table), target.logs)
        forest = Forest.of([tree for (tree,) in found.estimators_])
        return cls(encoder, forest, float(found.init_.constant_[0, 0]), RATE)

    def predict(self, table: Table) -> Estimate:
        leaves = self.forest.leaves(self.encoder.matrix(table))
        return Estimate.even(np.exp(self.start + self.rate * leaves.sum(axis=0)))

    def describe(self) -> str:
        return f"{len(self.forest.roots)} trees, {len(self.forest.value)} nodes, {len(self.encoder.names)} columns"

    def to_json(self) -> dict[str, Any]:
        data = {"encoder": self.encoder.to_json(), "forest": self.forest.to_json()}
        return {**data, "start": self.start, "rate": self.rate}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        forest = Forest.from_json(data["forest"])
        return cls(Encoder.from_json(data["encoder"]), forest, data["start"], data["rate"])
