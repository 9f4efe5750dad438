"""A message's time is its seconds on a measured link, and of the processors at both ends."""

import math
from typing import NamedTuple

import numpy as np

from planner.arrays import Floats
from profilers import stats
from profilers.records.links import LinkProfile
from profilers.records.readings import Samples

#: Bytes from which on a message costs a processor a fixed part, for caches that others have used
#: meanwhile, and a part by the byte. One line through all such sizes is steadier than each of them:
#: a machine that is slow for some seconds distorts a few sizes of a few links.
LARGE = 1 << 18
FEWEST_FOR_A_LINE = 3


def rate_bytes_per_s(link: LinkProfile) -> float:
    """Median goodput of a link."""
    return stats.median(link.bytes_per_s.values)


def transfer_s(link: LinkProfile, message_bytes: int, cap_bytes_per_s: float = math.inf) -> float:
    """One-way seconds of a message of ``message_bytes``, its sender and receiver otherwise idle.

    Linear between the medians of the message-size curve, and beyond its last point at the rate of
    its last two; without a curve latency + bytes / rate. A cap makes it no faster than that rate.
    """
    latency_s = stats.median(link.latency_s.values) if link.latency_s.values else 0.0
    measured_s = _on_curve(link, message_bytes, latency_s)
    if math.isinf(cap_bytes_per_s):
        return measured_s
    return max(measured_s, latency_s + message_bytes / cap_bytes_per_s)


class Processor(NamedTuple):
    """Processor seconds of a message at both ends."""

    send_s: float
    receive_s: float


def processor_s(link: LinkProfile, message_bytes: int) -> Processor:
    """Linear between the measured sizes, and on one line where they are LARGE.

    By the byte for a link without sizes, and beyond them without a line.
    """
    points = [(point.message_bytes, point.send_cpu_s, point.receive_cpu_s) for point in link.curve]
    known = sorted((size, send, receive) for size, send, receive in points if send is not None and receive is not None)
    if not known:
        return Processor(link.send_cpu_s * message_bytes, link.receive_cpu_s * message_bytes)
    sizes, send_s, receive_s = (np.array(column, float) for column in zip(*known, strict=True))
    return Processor(
        _cost_s(message_bytes, sizes, send_s, link.send_cpu_s),
        _cost_s(message_bytes, sizes, receive_s, link.receive_cpu_s),
    )


def _cost_s(size: int, sizes: Floats, costs_s: Floats, s_per_byte: float) -> float:
    """Processor seconds of one end for a message of ``size``, from those of ascending ``sizes``."""
    large = (sizes >= LARGE) & (costs_s > 0)
    beyond_s = s_per_byte * size
    if large.sum() >= FEWEST_FOR_A_LINE:
        fixed_s, by_byte_s = _line(sizes[large], costs_s[large])
        costs_s = np.where(large, fixed_s + by_byte_s * sizes, costs_s)
        beyond_s = fixed_s + by_byte_s * size
    return beyond_s if size > sizes[-1] else float(np.interp(size, (0, *sizes), (0, *costs_s)))


def _line(sizes: Floats, costs_s: Floats) -> tuple[float, float]:
    """Seconds a message and a byte, both at least 0, by least squares of the relative errors."""
    from scipy.optimize import nnls

    unit = np.array([1.0, 1.0 / sizes[-1]])  # so that both parts are of one magnitude
    shares = np.stack([np.ones_like(sizes), sizes], axis=1) / costs_s[:, None]
    parts, _ = nnls(shares * unit, np.ones_like(sizes))
    fixed_s, by_byte_s = parts * unit
    return float(fixed_s), float(by_byte_s)


def relative_error(link: LinkProfile, message_bytes: int) -> float:
    """Relative standard error of ``transfer_s``, from the samples nearest to the message's size."""
    points = [point for point in link.curve if len(point.seconds.values) > 1]
    if not points:
        return standard_error(link.bytes_per_s)
    return standard_error(min(points, key=lambda point: abs(point.message_bytes - message_bytes)).seconds)


def standard_error(samples: Samples) -> float:
    """Relative standard error of a mean of autocorrelated values; 0 below two values."""
    return stats.standard_error(samples.values)


def _on_curve(link: LinkProfile, message_bytes: int, latency_s: float) -> float:
    points = [(each.message_bytes, stats.median(each.seconds.values)) for each in link.curve if each.seconds.values]
    if not points:
        return latency_s + message_bytes / rate_bytes_per_s(link)
    points.sort()
    last, last_s = points[-1]
    if message_bytes <= last:
        sizes, seconds = zip((0, min(latency_s, points[0][1])), *points, strict=True)
        return float(np.interp(message_bytes, sizes, seconds))
    before, before_s = points[-2] if len(points) > 1 else points[-1]
    s_per_byte = (last_s - before_s) / (last - before) if last_s > before_s else 1 / rate_bytes_per_s(link)
    return last_s + (message_bytes - last) * s_per_byte
