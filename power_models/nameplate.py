"""A nameplate gives idle and busy watts; utilisation interpolates between them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from power_models import columns
from power_models.base import Estimate, Regressor, Target, Unsuitable
from power_models.linear import nonnegative_weights
from power_models.table import Floats, Table

#: Utilisation that is assumed of a device of unknown load.
UNKNOWN = 0.5


def watts(idle_watts: Floats, busy_watts: Floats, busy_fraction: Floats) -> Floats:
    """Mean watts of devices that are busy for a share of the time and idle for the rest.

    All broadcast against each other.
    idle_watts, busy_watts: measured, or a nameplate's; NaN, where unknown, stays NaN.
    Raises ValueError for a fraction outside [0, 1].
    """
    fraction = np.asarray(busy_fraction, dtype=np.float64)
    if np.any((fraction < 0) | (fraction > 1)):
        raise ValueError(f"busy fraction must lie in [0, 1], found {fraction.min()} to {fraction.max()}")
    idle = np.asarray(idle_watts, dtype=np.float64)
    return idle + (busy_watts - idle) * fraction


@dataclass(frozen=True)
class Nameplate(Regressor):
    """Idle and maximum watts, and between them the utilisation of the part that is busiest.

    loads: columns of utilisation, with the greatest value that each can have (1, or 100 per cent).
    The figures may be given instead of fitted: ``Nameplate(4.0, 15.0, {"u_cpu": 1.0})``.
    """

    name: ClassVar[str] = "nameplate"
    summary: ClassVar[str] = "from idle to maximum watts by the greatest utilisation"

    idle_w: float
    max_w: float
    loads: Mapping[str, float]

    def __post_init__(self) -> None:
        """Raises ValueError for figures that contradict each other."""
        if not 0.0 <= self.idle_w <= self.max_w or not all(full > 0.0 for full in self.loads.values()):
            raise ValueError(f"idle_w {self.idle_w:g}, max_w {self.max_w:g} and loads {dict(self.loads)} do not fit")

    @classmethod
    def fit(cls, table: Table, target: Target) -> Self:
        """The two watts that fit best, by relative errors; they do not fall with the load."""
        target.require_power()
        draft = cls(0.0, 0.0, _loads(table))
        busy = draft.busy(table)
        terms = np.column_stack([np.ones(table.rows), busy]) / target.values[:, None]
        idle_w, rise_w = nonnegative_weights(terms, np.ones(table.rows))
        return cls(float(idle_w), float(idle_w + rise_w), draft.loads)

    def busy(self, table: Table) -> Floats:
        """Share, 0 to 1, of the busiest part in each row, UNKNOWN where none of them is known."""
        shares = [table.numbers(name) / full for name, full in self.loads.items()]
        busiest = np.fmax.reduce(shares)
        return np.where(np.isnan(busiest), UNKNOWN, np.clip(busiest, 0.0, 1.0))

    def predict(self, table: Table) -> Estimate:
        return Estimate.even(watts(np.array(self.idle_w), np.array(self.max_w), self.busy(table)))

    def describe(self) -> str:
        return f"{self.idle_w:.3g} idle to {self.max_w:.3g} by {', '.join(self.loads)}"


def _loads(table: Table) -> dict[str, float]:
    """Columns of utilisation that change, shares or per cent."""
    found = {}
    for name in table.names:
        values = table.numbers(name)
        known = values[np.isfinite(values)]
        if columns.is_load(name) and known.size and 0 <= known.min() < known.max() <= 100:
            found[name] = 1.0 if known.max() <= 1 else 100.0
    if not found:
        raise Unsuitable("there is no column of utilisation (named utilization, usage, busy or u) that changes")
    return found
