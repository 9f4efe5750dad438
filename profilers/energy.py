"""This module turns the samples of a power sensor over a window into watts.

Watts are integrated by trapezoids on the device's monotonic clock; joules are differenced.
"""

import math
from typing import List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from profilers import stats

#: Two samples have a gap between them if they lie further apart than both of these.
GAP_PERIODS = 5.0
GAP_S = 1.0
#: Readings of a counter closer together than this share of the median interval are left out:
#: the resolution of the counter dominates their difference.
TOO_CLOSE = 0.5
#: Length of a bin of a window, and the most bins of one.
BIN_S = 1.0
MAX_BINS = 60


class Span(NamedTuple):
    """A window on the monotonic clock, and its longest sampling period."""

    begin_s: float
    end_s: float
    period_s: float


def cumulative_joules(times_s: Sequence[float], values: Sequence[float], counts_joules: bool) -> np.ndarray:
    """Joules since the first of n >= 1 samples, (n,); ``values`` are joules so far, or watts."""
    readings = np.asarray(values, dtype=float)
    if counts_joules:
        used_j: np.ndarray = readings - readings[0]
        return used_j
    steps_j = (readings[1:] + readings[:-1]) / 2.0 * np.diff(times_s)
    return np.concatenate(([0.0], np.cumsum(steps_j)))


def sample_watts(times_s: Sequence[float], values: Sequence[float], counts_joules: bool) -> List[float]:
    """Watts of the n >= 2 samples; for a counter those between two samples, at most (n - 1,)."""
    readings = np.asarray(values, dtype=float)
    if not counts_joules:
        return [float(value) for value in readings]
    lengths_s = np.diff(times_s)
    apart = lengths_s >= TOO_CLOSE * np.median(lengths_s)
    return [float(value) for value in np.diff(readings)[apart] / lengths_s[apart]]


def clip_to_begin(begin_s: float, samples: Sequence[Tuple[float, float]]) -> List[Tuple[float, float]]:
    """Samples from ``begin_s`` on, and one interpolated there where the log reaches back."""
    inside = [sample for sample in samples if sample[0] >= begin_s]
    if not inside or len(inside) == len(samples):
        return inside
    times_s, values = zip(*samples)
    return [(begin_s, float(np.interp(begin_s, times_s, values)))] + inside


def gap_s(span: Span, times_s: Sequence[float]) -> float:
    """Seconds of a window without samples: gaps between samples and at both ends."""
    lengths_s = np.diff(np.concatenate(([span.begin_s], times_s, [span.end_s])))
    return float(lengths_s[lengths_s > max(GAP_PERIODS * span.period_s, GAP_S)].sum())


def change_period_s(times_s: Sequence[float], values: Sequence[float]) -> Optional[float]:
    """Median seconds between two changes of the value; None for fewer than two changes."""
    changed_s = np.asarray(times_s, dtype=float)[1:][np.diff(values) != 0.0]
    return float(np.median(np.diff(changed_s))) if len(changed_s) > 1 else None


def relative_error(watts: Sequence[float], mean_w: float, missed: float) -> Optional[float]:
    """Standard error of the mean of n watts as a share of it; None for equal values or n < 2.

    missed: share of the window in gaps, 0..1; its watts are off by one standard deviation.
    Only independent samples count. Calibration and resolution do not show in samples, and are left
    out.
    """
    spread_w = stats.stdev(watts) if len(watts) > 1 else 0.0
    if not spread_w > 0.0:
        return None
    return spread_w * math.sqrt(1.0 / stats.effective_count(watts) + missed**2) / mean_w


def integral_error(times_s: Sequence[float], values: Sequence[float], counts_joules: bool) -> Optional[float]:
    """Standard error of the joules of n >= 2 samples as a share of them; None where none were used.

    A change of the load lies anywhere between two samples of watts, so that a trapezoid is off by
    |change| x length / sqrt(12). A counter is off at its ends only, by up to one of its periods.
    Unlike ``relative_error`` this tells nothing of other windows.
    """
    used_j = float(cumulative_joules(times_s, values, counts_joules)[-1])
    if not used_j > 0.0:
        return None
    if counts_joules:
        watts, period_s = sample_watts(times_s, values, counts_joules), change_period_s(times_s, values) or 0.0
        off_j = period_s * math.hypot(watts[0], watts[-1])
    else:
        off_j = float(np.linalg.norm(np.diff(values) * np.diff(times_s)))
    return off_j / math.sqrt(12.0) / used_j


def bin_count(span: Span) -> int:
    """Number of equal bins, of about a second, of a window; 0 below half a second."""
    return min(MAX_BINS, int((span.end_s - span.begin_s) / BIN_S + 0.5))


def bin_means(span: Span, times_s: Sequence[float], values: Sequence[float]) -> Tuple[Optional[float], ...]:
    """Mean of the values in each bin; None for an empty bin."""
    edges_s = _edges_s(span)
    counts, _ = np.histogram(times_s, edges_s)
    sums, _ = np.histogram(times_s, edges_s, weights=values)
    return tuple(float(total) / float(count) if count else None for total, count in zip(sums, counts))


def bin_watts(span: Span, times_s: Sequence[float], used_j: np.ndarray) -> Tuple[Optional[float], ...]:
    """Mean watts in each bin, from joules since the first sample; None for an empty bin."""
    edges_s = _edges_s(span)
    counts, _ = np.histogram(times_s, edges_s)
    known_s = np.clip(edges_s, times_s[0], times_s[-1])
    lengths_s, parts_j = np.diff(known_s), np.diff(np.interp(known_s, times_s, used_j))
    return tuple(
        float(part) / float(length) if count and length > 0.0 else None
        for part, length, count in zip(parts_j, lengths_s, counts)
    )


def _edges_s(span: Span) -> np.ndarray:
    return np.linspace(span.begin_s, span.end_s, bin_count(span) + 1)
