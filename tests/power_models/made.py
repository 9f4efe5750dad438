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
