"""Under a power limit each configuration draws its demand, or what the limit lets through.

1. The ``curve`` of the limit is shared by all configurations (every feature but the limit).
2. Each configuration has a demand. That of an unseen one is the mean of a Gaussian process and of
   extra-trees, both of the logarithm of the watts above idle; their errors beyond the fitted range
   have different signs.
3. A Gaussian process predicts the rest.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from power_models import columns
from power_models.base import Estimate, Regressor, Target, Unsuitable
from power_models.curve import Curve
from power_models.encoding import Encoder
from power_models.gp import FittedProcess
from power_models.table import Floats, Table
from power_models.trees import Forest

#: Rows that each configuration needs on average, at different limits.
FEWEST_ROWS = 2.5
#: Scales logarithms of watts to about one standard deviation, for the Gaussian process.
STRETCH = 4.0
#: Share of the least demand that is taken to be drawn by a device that idles.
IDLE = 0.8
OPTIONS = {"n_estimators": 100, "max_features": 0.6, "random_state": 0}


@dataclass(frozen=True)
class Saturation(Regressor):
    """exp(curve(demand(configuration), limit) + rest(configuration, limit))."""

    name: ClassVar[str] = "saturation"
    summary: ClassVar[str] = "watts under a power limit: min(demand, limit) with a soft corner"
    KEYS: ClassVar[Mapping[str, str]] = {"curve": "corner"}

    limit: str
    encoder: Encoder
    curve: Curve
    known: Floats
    demands: Floats
    idle_w: float
    above: FittedProcess
    forest: Forest
    rest: FittedProcess

    @classmethod
    def fit(cls, table: Table, target: Target) -> Self:
        limit = _limit(table, target)
        others = table.only(name for name in table.names if name != limit)
        encoder = Encoder.fit(others, logs=True, needed=False)
        if not encoder.names:
            raise Unsuitable("nothing but the power limit changes")
        matrix = encoder.matrix(table)
        known, series = np.unique(matrix, axis=0, return_inverse=True)
        series = series.reshape(-1)
        if table.rows < FEWEST_ROWS * len(known):
            raise Unsuitable("too few configurations were run at several limits")
        limits = np.log(table.numbers(limit))
        curve = Curve.fit(limits, target.logs, series)
        demands = curve.demands(limits, target.logs, series)
        idle_w = IDLE * float(np.exp(demands.min()))
        logs = np.log(np.exp(demands) - idle_w)
        above = FittedProcess.fit(known, logs)
        forest = Forest.fit(known, logs, OPTIONS)
        left = target.logs - curve.watts(demands[series], limits)
        rest = FittedProcess.fit(_inputs(matrix, demands[series], limits, curve), left)
        return cls(limit, encoder, curve, known, demands, idle_w, above, forest, rest)

    def predict(self, table: Table) -> Estimate:
        matrix = self.encoder.matrix(table)
        watts = table.numbers(self.limit)
        limits = np.log(np.where(watts > 0, watts, np.exp(self.curve.middle)))
        demands, unsure = self._demands(matrix)
        rest, stdev = self.rest.predict(_inputs(matrix, demands, limits, self.curve))
        felt = unsure * self.curve.sensitivity(demands, limits)
        return Estimate(np.exp(self.curve.watts(demands, limits) + rest), np.hypot(stdev, felt))

    def _demands(self, matrix: Floats) -> tuple[Floats, Floats]:
        """Demand (log) and its standard deviation, 0 for a known configuration."""
        mean, stdev = self.above.predict(matrix)
        above_w = np.exp((mean + self.forest.mean(matrix)) / 2)
        demand_w = above_w + self.idle_w
        same = np.all(np.abs(matrix[:, None, :] - self.known[None, :, :]) < 1e-9, axis=2)
        seen = same.any(axis=1)
        made = np.where(seen, self.demands[same.argmax(axis=1)], np.log(demand_w))
        return made, np.where(seen, 0.0, stdev * above_w / demand_w)

    def describe(self) -> str:
        share, slope, sharpness, middle = self.curve
        middle_w = np.exp(middle)
        cap = f"cap {np.exp(share):.3f} · {middle_w:.0f} · ({self.limit} / {middle_w:.0f})^{slope:.2f}"
        return f"{cap}, corner k = {np.exp(sharpness):.1f}, {len(self.known)} configurations"


def _limit(table: Table, target: Target) -> str:
    """The column of power limits."""
    if target.log:
        raise Unsuitable(f"{target.name} is no power")
    for name in table.names:
        values = table.numbers(name)
        if columns.is_limit(name) and np.all(values > 0) and values.min() < values.max():
            return name
    raise Unsuitable("there is no column of power limits (named power limit or power cap) that changes")


def _inputs(matrix: Floats, demands: Floats, limits: Floats, curve: Curve) -> Floats:
    """Inputs of the rest: demand over limit, the limit, and the configuration."""
    return np.column_stack([STRETCH * (demands - limits), STRETCH * (limits - curve.middle), matrix])
