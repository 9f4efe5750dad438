"""This module computes statistics of step times and other samples.

Profiles store the samples; statistics are computed on reading.
"""

import math
from typing import Optional, Sequence

import numpy as np

#: 97.5 % quantiles of Student's t for 1 to 4 degrees of freedom: the expansion is too coarse there.
_SMALL_T = (12.7062, 4.3027, 3.1824, 2.7764)
#: Half of the two-sided 95 % interval of a normal distribution, in standard deviations.
Z95 = 1.959964

#: Fewest steps of a segment that ``warmup_ended`` judges.
WARMUP_SEGMENT = 40
#: Drift, as a share of the median, that is too small to matter however quiet the steps are.
WARMUP_TOLERANCE = 0.005


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean. Raises ValueError without values."""
    _require(values, 1)
    return float(np.mean(values))


def median(values: Sequence[float]) -> float:
    """Median. Raises ValueError without values."""
    _require(values, 1)
    return float(np.median(values))


def stdev(values: Sequence[float]) -> float:
    """Sample standard deviation (n - 1). Raises ValueError for fewer than two values."""
    _require(values, 2)
    return float(np.std(values, ddof=1))


def student95(freedom: float) -> float:
    """Two-sided 95 % quantile of Student's t, within 0.2 %; fractions of a degree are rounded down.

    Cornish-Fisher expansion (Abramowitz and Stegun 26.7.5). Raises ValueError below one degree.
    """
    n = math.floor(freedom)
    if n < 1:
        raise ValueError("%g degrees of freedom; at least 1 is needed" % freedom)
    if n <= len(_SMALL_T):
        return _SMALL_T[n - 1]
    z = Z95
    return (
        z
        + (z**3 + z) / (4 * n)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
    )


def effective_count(values: Sequence[float]) -> float:
    """Number of independent values with the same error of the mean, n (1 - r) / (1 + r), 2 to n.

    r is the autocorrelation of neighbours, at least 0. Raises ValueError for fewer than two values.
    """
    _require(values, 2)
    deviations = np.asarray(values, dtype=float) - np.mean(values)
    total = float(np.dot(deviations, deviations))
    if total <= 0.0:
        return float(len(values))
    r = max(0.0, float(np.dot(deviations[1:], deviations[:-1])) / total)
    return max(2.0, len(values) * (1.0 - r) / (1.0 + r))


def standard_error(values: Sequence[float]) -> float:
    """Relative standard error of a mean of autocorrelated values; 0 below two values."""
    if len(values) < 2 or mean(values) <= 0:
        return 0.0
    return stdev(values) / math.sqrt(effective_count(values)) / mean(values)


def relative_interval95(values: Sequence[float]) -> float:
    """Half width of the 95 % interval of the mean (Student's t), as a share of the mean.

    Infinite below two values, and for a mean of zero.
    """
    if len(values) < 2 or mean(values) == 0.0:
        return math.inf
    count = effective_count(values)
    return student95(count - 1) * stdev(values) / math.sqrt(count) / abs(mean(values))


def warmup_ended(values: Sequence[float]) -> Optional[int]:
    """The index from which the values are steady; None while that is undecided.

    Three segments are judged: all values, without the first quarter, without the first half; none
    shorter than 40. A segment is steady if its first and last third have the same median:
    difference + standard error <= the noise of one value or 0.5 % of the median, whichever is
    larger. The noise comes from differences of neighbours and all figures from medians, so that
    neither a slow drift nor single slow steps pass for noise.
    """
    count = len(values)
    for start in (0, count // 4, count // 2):
        if count - start >= WARMUP_SEGMENT and _steady(np.asarray(values[start:], dtype=float)):
            return start
    return None


def _steady(values: np.ndarray) -> bool:
    third = len(values) // 3
    noise = float(np.median(np.abs(np.diff(values)))) / 0.954  # of normal noise: 0.6745 sqrt(2) stdev
    error = 1.253 * noise * math.sqrt(2.0 / third)  # the median's, on either side
    drift = abs(float(np.median(values[:third])) - float(np.median(values[-third:])))
    return drift + error <= max(noise, WARMUP_TOLERANCE * abs(float(np.median(values))))


def _require(values: Sequence[float], count: int) -> None:
    if len(values) < count:
        raise ValueError("%d values; at least %d are needed" % (len(values), count))
