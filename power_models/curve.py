"""The curve of a power limit gives the watts: min(demand, cap) with a soft corner.

    watts = (demand^-k + cap^-k)^(-1/k),   cap = share · middle · (limit / middle)^slope

demand: watts of one configuration without a limit.
middle: the geometric mean of the limits.
All of these are handled as logarithms.
"""

from typing import NamedTuple

import numpy as np

from power_models.table import Floats, Ints

#: Demands tried for a configuration: a little below its greatest watts, up to e² times those.
STEPS = np.arange(-0.15, 2.0, 0.02)
#: Penalty on demands above the greatest watts: squared log watts for each squared log demand.
PRIOR = 0.003


class Curve(NamedTuple):
    """The law above: share (log), slope, k (log), and the logarithm of the middle limit."""

    share: float
    slope: float
    sharpness: float
    middle: float

    @classmethod
    def fit(cls, limits: Floats, watts: Floats, series: Ints) -> "Curve":
        """Least squares.

        limits, watts: logarithms of watts.
        series: 0 … n-1, the rows of one demand.
        """
        from scipy.optimize import minimize

        middle = float(limits.mean())

        def loss(theta: Floats) -> float:
            tried = cls(theta[0], theta[1], theta[2], middle)._losses(limits, watts, series)
            return float(tried.min(axis=1).sum()) + 0.01 * float((theta[2] - 1.8) ** 2 + theta[0] ** 2)

        options = {"maxiter": 150, "xatol": 0.005, "fatol": 1e-5}
        found = minimize(loss, [-0.03, 0.95, 1.8], method="Nelder-Mead", options=options)
        share, slope, sharpness = found.x.tolist()
        return cls(share, slope, sharpness, middle)

    def watts(self, demands: Floats, limits: Floats) -> Floats:
        """Logarithm of watts; all broadcast."""
        cap = self.share + self.middle + self.slope * (limits - self.middle)
        return np.asarray(-np.logaddexp(-self._k * demands, -self._k * cap) / self._k, dtype=np.float64)

    def sensitivity(self, demands: Floats, limits: Floats) -> Floats:
        """d watts / d demand (logarithms): 1 far below the limit, 0 far above; all broadcast."""
        return np.asarray(np.exp(self._k * (self.watts(demands, limits) - demands)), dtype=np.float64)

    def demands(self, limits: Floats, watts: Floats, series: Ints) -> Floats:
        """Logarithm of each series' demand: the vertex of a parabola through the least losses."""
        losses = self._losses(limits, watts, series)
        best = np.clip(losses.argmin(axis=1), 1, len(STEPS) - 2)
        left, at, right = (losses[np.arange(len(losses)), best + shift] for shift in (-1, 0, 1))
        bend = np.maximum(left - 2 * at + right, 1e-12)
        shift = np.clip((left - right) / (2 * bend), -0.5, 0.5)
        return np.asarray(_greatest(watts, series) + STEPS[best] + shift * (STEPS[1] - STEPS[0]), dtype=np.float64)

    @property
    def _k(self) -> float:
        return float(np.exp(np.clip(self.sharpness, 0.0, 4.0)))

    def _losses(self, limits: Floats, watts: Floats, series: Ints) -> Floats:
        """(series, steps): squared errors with each demand tried."""
        top = _greatest(watts, series)
        tried = top[series][:, None] + STEPS[None, :]
        sums = np.zeros((len(top), len(STEPS)))
        np.add.at(sums, series, (self.watts(tried, limits[:, None]) - watts[:, None]) ** 2)
        return sums + PRIOR * STEPS[None, :] ** 2


def _greatest(values: Floats, series: Ints) -> Floats:
    """The greatest value of each series."""
    found = np.full(int(series.max()) + 1, -np.inf)
    np.maximum.at(found, series, values)
    return found
