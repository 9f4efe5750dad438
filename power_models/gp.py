"""A Gaussian process on the target's logarithm: smooth between rows, unsure far from them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from power_models.base import Estimate, Regressor, Target
from power_models.encoding import Encoder
from power_models.gaussian import FittedProcess
from power_models.table import Ints, Table

#: With more columns of numbers than this, all of them share one length scale.
MOST_LENGTHS = 12
#: Logarithms far from every row are cut off here: their exponentials are still numbers.
FARTHEST = 700.0


@dataclass(frozen=True)
class GaussianProcess(Regressor):
    """Its interval is as wide as its standard deviation says, times a factor found on held-out rows."""

    name: ClassVar[str] = "gp"
    summary: ClassVar[str] = "Gaussian process: smooth, with an interval of its own for each row"

    encoder: Encoder
    process: FittedProcess

    @classmethod
    def fit(cls, table: Table, target: Target) -> Self:
        encoder = Encoder.fit(table, logs=True)
        return cls(encoder, FittedProcess.fit(encoder.matrix(table), target.logs, lengths_of(encoder)))

    def predict(self, table: Table) -> Estimate:
        mean, stdev = self.process.predict(self.encoder.matrix(table))
        return Estimate(np.exp(np.clip(mean, -FARTHEST, FARTHEST)), stdev)

    def describe(self) -> str:
        hyper = self.process.hyper
        noise = 100 * self.process.stdev * np.sqrt(hyper.noise)
        return f"noise {noise:.2g} %, {len(self.process.outputs)} rows kept, {len(hyper.lengths)} columns"

    def to_json(self) -> dict[str, Any]:
        return {"encoder": self.encoder.to_json(), "process": self.process.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(Encoder.from_json(data["encoder"]), FittedProcess.from_json(data["process"]))


def lengths_of(encoder: Encoder) -> Ints:
    """Which columns of the matrix share a length scale: those of one column of the table, or all numbers."""
    numbers = len(encoder.numeric)
    if numbers <= MOST_LENGTHS:
        return encoder.owners
    return np.maximum(encoder.owners - numbers + 1, 0)
