"""From what a power sensor said over a window to its watts: mean, error, gaps, period, and second by second. Pure.

Watts are integrated by trapezoids on the device's monotonic clock, joules that a sensor counts are differenced.
"""

import math
from typing import List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from profilers import stats

#: Two samples are too far apart, a gap, beyond so many periods and so many seconds.
GAP_PERIODS = 5.0
GAP_S = 1.0
#: Of a counter's readings those so close together, as a share of the usual interval, tell nothing of its watts.
TOO_CLOSE = 0.5
#: What a stretch of a window lasts, and how many a window has at most.
STRETCH_S = 1.0
STRETCHES = 60


class Span(NamedTuple):
    """A window on the monotonic clock, and how often it was sampled at the least."""

    begin_s: float
    end_s: float
    period_s: float


def joules(times_s: Sequence[float], values: Sequence[float], counts_joules: bool) -> np.ndarray:
    """(n,) joules since the first of n samples, n >= 1; values: joules so far where ``counts_joules``, else watts."""
    known = np.asarray(values, dtype=float)
    if counts_joules:
        return known - known[0]
    steps = (known[1:] + known[:-1]) / 2.0 * np.diff(times_s)
    return np.concatenate(([0.0], np.cumsum(steps)))


def watts_seen(times_s: Sequence[float], values: Sequence[float], counts_joules: bool) -> List[float]:
    """Watts that the samples say each by itself, of n >= 2; of a counter those between two, (n - 1,) at most."""
    known = np.asarray(values, dtype=float)
    if not counts_joules:
        return [float(value) for value in known]
    lengths_s = np.diff(times_s)
    apart = lengths_s >= TOO_CLOSE * np.median(lengths_s)
    return [float(value) for value in np.diff(known)[apart] / lengths_s[apart]]


def from_begin(begin_s: float, samples: Sequence[Tuple[float, float]]) -> List[Tuple[float, float]]:
    """A log's samples from ``begin_s`` on, preceded by the value at ``begin_s`` where it reaches back beyond that."""
    inside = [sample for sample in samples if sample[0] >= begin_s]
    if not inside or len(inside) == len(samples):
        return inside
    times_s, values = zip(*samples)
    return [(begin_s, float(np.interp(begin_s, times_s, values)))] + inside


def gap_s(span: Span, times_s: Sequence[float]) -> float:
    """Seconds of a window in gaps between samples, or between them and its ends."""
    lengths_s = np.diff(np.concatenate(([span.begin_s], times_s, [span.end_s])))
    return float(lengths_s[lengths_s > max(GAP_PERIODS * span.period_s, GAP_S)].sum())


def change_period_s(times_s: Sequence[float], values: Sequence[float]) -> Optional[float]:
    """Median seconds between two samples that say something new; None for fewer than two such."""
    changed_s = np.asarray(times_s, dtype=float)[1:][np.diff(values) != 0.0]
    return float(np.median(np.diff(changed_s))) if len(changed_s) > 1 else None


def relative_error(watts: Sequence[float], mean_w: float, missed: float) -> Optional[float]:
    """Standard error of the mean of n watts, as a share of it; None where all say the same, or where n < 2.

    Of n samples so many count as are independent (``stats.effective_count``). missed: the share of the window
    in gaps, 0..1; what was drawn there is off from what is taken for it by one standard deviation. What the sensor's
    calibration is off by is not in it, nor its resolution: where all samples are equal nothing tells either.
    """
    spread_w = stats.stdev(watts) if len(watts) > 1 else 0.0
    if not spread_w > 0.0:
        return None
    return spread_w * math.sqrt(1.0 / stats.effective_count(watts) + missed**2) / mean_w


def stretches(span: Span) -> int:
    """Into how many equal stretches, of about a second, a window is divided; none if it is shorter than half of one."""
    return min(STRETCHES, int((span.end_s - span.begin_s) / STRETCH_S + 0.5))


def means(span: Span, times_s: Sequence[float], values: Sequence[float]) -> Tuple[Optional[float], ...]:
    """The mean of the values in each stretch; None for one without."""
    edges_s = _edges_s(span)
    counts, _ = np.histogram(times_s, edges_s)
    sums, _ = np.histogram(times_s, edges_s, weights=values)
    return tuple(float(total) / float(count) if count else None for total, count in zip(sums, counts))


def watts_by_stretch(span: Span, times_s: Sequence[float], used_j: np.ndarray) -> Tuple[Optional[float], ...]:
    """Mean watts in each stretch, from joules since the first sample; None for one without a sample."""
    edges_s = _edges_s(span)
    counts, _ = np.histogram(times_s, edges_s)
    known_s = np.clip(edges_s, times_s[0], times_s[-1])
    lengths_s, parts_j = np.diff(known_s), np.diff(np.interp(known_s, times_s, used_j))
    return tuple(
        float(part) / float(length) if count and length > 0.0 else None
        for part, length, count in zip(parts_j, lengths_s, counts)
    )


def _edges_s(span: Span) -> np.ndarray:
    return np.linspace(span.begin_s, span.end_s, stretches(span) + 1)
