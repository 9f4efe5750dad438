"""The curve of a power limit gives the watts: min(demand, cap) with a soft corner.

    watts = (demand^-k + cap^-k)^(-1/k),   cap = share · middle · (limit / middle)^slope

demand: watts of one configuration without a limit.
middle: the geometric mean of the limits.
All of these are handled as logarithms.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from power_models.stored import Stored
from power_models.table import Floats, Ints

#: Demands tried for a configuration: a little below its greatest watts, up to e² times those.
STEPS = np.arange(-0.15, 2.0, 0.02)
#: Penalty on demands above the greatest watts: squared log watts for each squared log demand.
PRIOR = 0.003


class Corner(NamedTuple):
    """share (log), slope and k (log) of the curve, and the logarithm of the middle limit."""

    share: float
    slope: float
    sharpness: float
    middle: float


@dataclass(frozen=True)
class Curve(Stored):
    """The law above with its three numbers."""

    corner: Corner

    def to_json(self) -> dict[str, Any]:
        return self.corner._asdict()

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(Corner(**data))

    @classmethod
    def fit(cls, limits: Floats, watts: Floats, series: Ints) -> "Curve":
        """Least squares.

        limits, watts: logarithms of watts.
        series: 0 … n-1, the rows of one demand.
        """
        from scipy.optimize import minimize

        middle = float(limits.mean())

        def loss(theta: Floats) -> float:
            curve = cls(Corner(theta[0], theta[1], theta[2], middle))
            tried = curve._losses(limits, watts, series)
            return float(tried.min(axis=1).sum()) + 0.01 * float((theta[2] - 1.8) ** 2 + theta[0] ** 2)

        start = np.array([-0.03, 0.95, 1.8])
        options = {"maxiter": 150, "xatol": 0.005, "fatol": 1e-5}
        found = minimize(loss, start, method="Nelder-Mead", options=options)
        share, slope, sharpness = (float(value) for value in found.x)
        return cls(Corner(share, slope, sharpness, middle))

    def watts(self, demands: Floats, limits: Floats) -> Floats:
        """Logarithm of watts; all broadcast."""
        share, slope, _, middle = self.corner
        k = self._sharpness
        cap = share + middle + slope * (limits - middle)
        return np.asarray(-np.logaddexp(-k * demands, -k * cap) / k, dtype=np.float64)

    def slope(self, demands: Floats, limits: Floats) -> Floats:
        """d watts / d demand (logarithms): 1 far below the limit, 0 far above; all broadcast."""
        return np.asarray(np.exp(self._sharpness * (self.watts(demands, limits) - demands)), dtype=np.float64)

    def demands(self, limits: Floats, watts: Floats, series: Ints) -> Floats:
        """Logarithm of each series' demand, from its rows."""
        losses = self._losses(limits, watts, series)
        best = np.clip(losses.argmin(axis=1), 1, len(STEPS) - 2)
        rows = np.arange(len(losses))
        left, at, right = (losses[rows, best + shift] for shift in (-1, 0, 1))
        bend = np.maximum(left - 2 * at + right, 1e-12)
        shift = np.clip((left - right) / (2 * bend), -0.5, 0.5)
        made = greatest(watts, series) + STEPS[best] + shift * (STEPS[1] - STEPS[0])
        return np.asarray(made, dtype=np.float64)

    @property
    def _sharpness(self) -> float:
        """k of the law."""
        return float(np.exp(np.clip(self.corner.sharpness, 0.0, 4.0)))

    def _losses(self, limits: Floats, watts: Floats, series: Ints) -> Floats:
        """(series, steps): squared errors with each demand tried."""
        top = greatest(watts, series)
        tried = top[series][:, None] + STEPS[None, :]
        errors = (self.watts(tried, limits[:, None]) - watts[:, None]) ** 2
        sums = np.zeros((len(top), len(STEPS)))
        np.add.at(sums, series, errors)
        return sums + PRIOR * STEPS[None, :] ** 2


def greatest(values: Floats, series: Ints) -> Floats:
    """The greatest value of each series."""
    found = np.full(int(series.max()) + 1, -np.inf)
    np.maximum.at(found, series, values)
    return found
