"""Seconds a message takes over a measured link."""

import itertools
import math
from typing import NamedTuple

import numpy as np

from profilers import stats
from profilers.records import LinkProfile, Samples


def rate_bytes_per_s(link: LinkProfile, cap_bytes_per_s: float = math.inf) -> float:
    """Median goodput of a link, or the cap where that is lower."""
    return min(_median(link.bytes_per_s), cap_bytes_per_s)


def transfer_s(link: LinkProfile, message_bytes: int, cap_bytes_per_s: float = math.inf) -> float:
    """One-way seconds of a message of ``message_bytes``, its sender and receiver otherwise idle.

    Linear between the medians of the message-size curve, and beyond its last point at the rate of
    its last two; without a curve latency + bytes / rate. A cap makes it no faster than that rate.
    """
    latency_s = _median(link.latency_s) if link.latency_s.values else 0.0
    measured_s = _on_curve(link, message_bytes, latency_s)
    if math.isinf(cap_bytes_per_s):
        return measured_s
    return max(measured_s, latency_s + message_bytes / cap_bytes_per_s)


class Processor(NamedTuple):
    """Processor seconds of one message at both ends."""

    send_s: float
    receive_s: float


def processor_s(link: LinkProfile, message_bytes: int) -> Processor:
    """What a message costs the processors: linear between the measured sizes, by the byte beyond the largest.

    Of links measured before sizes were told apart by the byte throughout.
    """
    points = [(point.message_bytes, point.send_cpu_s, point.receive_cpu_s) for point in link.curve]
    known = sorted((size, send, receive) for size, send, receive in points if send is not None and receive is not None)
    if not known or message_bytes > known[-1][0]:
        return Processor(link.send_cpu_s * message_bytes, link.receive_cpu_s * message_bytes)
    sizes, send_s, receive_s = zip((0, 0.0, 0.0), *known, strict=True)
    return Processor(
        float(np.interp(message_bytes, sizes, send_s)), float(np.interp(message_bytes, sizes, receive_s))
    )


def relative_error(link: LinkProfile, message_bytes: int) -> float:
    """Relative standard error of ``transfer_s``, from the samples nearest to the message's size."""
    points = [point for point in link.curve if len(point.seconds.values) > 1]
    if not points:
        return standard_error(link.bytes_per_s)
    return standard_error(min(points, key=lambda point: abs(point.message_bytes - message_bytes)).seconds)


def standard_error(samples: Samples) -> float:
    """Relative standard error of a mean of values that may resemble their neighbours; 0 below two values."""
    if len(samples.values) < 2 or stats.mean(samples.values) <= 0:
        return 0.0
    count = stats.effective_count(samples.values)
    return stats.stdev(samples.values) / math.sqrt(count) / stats.mean(samples.values)


def _on_curve(link: LinkProfile, message_bytes: int, latency_s: float) -> float:
    points = sorted(
        (point.message_bytes, _median(point.seconds)) for point in link.curve if point.seconds.values
    )
    if not points:
        return latency_s + message_bytes / _median(link.bytes_per_s)
    start = (0, min(latency_s, points[0][1]))
    for (low, low_s), (high, high_s) in itertools.pairwise([start, *points]):
        if message_bytes <= high:
            return low_s + (high_s - low_s) * (message_bytes - low) / (high - low)
    last, last_s = points[-1]
    return last_s + (message_bytes - last) * _tail_s_per_byte(points, link)


def _tail_s_per_byte(points: list[tuple[int, float]], link: LinkProfile) -> float:
    if len(points) > 1:
        (before, before_s), (last, last_s) = points[-2:]
        if last_s > before_s:
            return (last_s - before_s) / (last - before)
    return 1 / _median(link.bytes_per_s)


def _median(samples: Samples) -> float:
    return stats.median(samples.values)
