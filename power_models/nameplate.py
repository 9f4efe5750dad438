"""Watts from two known points, idle and busy, and the share of time a device is busy."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def watts(idle_watts: Floats, busy_watts: Floats, busy_fraction: Floats) -> Floats:
    """Mean watts of devices that are busy for a share of the time and idle for the rest.

    All broadcast against each other. idle_watts, busy_watts: measured, or a nameplate's idle and
    maximum; NaN where unknown, which the result keeps. Raises ValueError for a fraction outside [0, 1].
    """
    fraction = np.asarray(busy_fraction, dtype=np.float64)
    if np.any((fraction < 0) | (fraction > 1)):
        raise ValueError(f"busy fraction must lie in [0, 1], found {fraction.min()} to {fraction.max()}")
    idle = np.asarray(idle_watts, dtype=np.float64)
    return idle + (busy_watts - idle) * fraction
