"""Tables that follow known laws, for the tests of power models."""

import numpy as np

from power_models.base import Target
from power_models.table import Floats, Table


def counters(rows: int = 60, seed: int = 0) -> tuple[Table, Target]:
    """Watts of a physical law, 20 + 60 u f + 40 u f³: core clock f, utilisation u."""
    clock, busy = _drawn(rows, seed)
    return _programs(clock, busy), Target("average_power", 20 + 60 * busy * clock + 40 * busy * clock**3)


def added(rows: int = 60, seed: int = 0, clock_w: float = 30.0) -> tuple[Table, Target]:
    """Watts of a linear law, 20 + clock_w f + 60 u, of the same programs."""
    clock, busy = _drawn(rows, seed)
    return _programs(clock, busy), Target("average_power", 20 + clock_w * clock + 60 * busy)


def _drawn(rows: int, seed: int) -> tuple[Floats, Floats]:
    random = np.random.default_rng(seed)
    return random.uniform(0.3, 1.0, rows), random.uniform(0.1, 1.0, rows)


def _programs(clock: Floats, busy: Floats) -> Table:
    columns = {
        "core_frequency": 1000 * clock,
        "busy": busy,
        "nothing": np.zeros(len(clock)),
        "program": np.array(["abc"[i % 3] for i in range(len(clock))]),
    }
    return Table(columns)


def limited(noise: float = 0.0) -> tuple[Table, Target]:
    """Runs of eight networks at six limits, a soft minimum of demand and 0.97 times the limit."""
    random = np.random.default_rng(1)
    demands = 60.0 * 1.25 ** np.arange(8)
    limits = np.array([100.0, 125, 150, 175, 200, 250])
    demand, limit = np.repeat(demands, 6), np.tile(limits, 8)
    watts = (demand**-6.0 + (0.97 * limit) ** -6.0) ** (-1 / 6)
    times = 100 * (demand / watts) ** 1.5
    columns = {
        "network": np.array([f"n{i}" for i in range(8) for _ in limits]),
        "power_limit": limit,
        "batch_size": np.full(48, 32.0),
        "time_per_epoch": times,
        "average_power": watts * np.exp(noise * random.standard_normal(48)),
    }
    return Table(columns), Target("average_power", np.asarray(columns["average_power"]))
