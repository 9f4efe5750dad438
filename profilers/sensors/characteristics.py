"""This module measures the update period and the noise of power sensors."""

import math
import time
from typing import List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from profilers import stats
from profilers.records.device import SensorFacts
from profilers.records.readings import UNAVAILABLE
from profilers.sensors import discover
from profilers.sensors.base import DiscoveredSensors, Sensor
from profilers.time_series import TimeSeries

#: Duration and interval of reading. No shorter period than the interval can be seen.
WATCH_S = 2.0
POLL_S = 0.005
#: Fewest changes of value from which a period is estimated.
MIN_CHANGES = 4
NOTHING_USED = "it reads zero or does not count: it stands still"


class Characteristics(NamedTuple):
    """Seconds between new values, and the standard deviation of a reading; None for few changes."""

    period_s: Optional[float]
    noise_w: Optional[float]


def estimate(times_s: Sequence[float], values: Sequence[float], counts_joules: bool) -> Characteristics:
    """Characteristics of a sensor that was read much faster than it updates.

    times_s, values: monotonic seconds of the reads, and watts, or joules where ``counts_joules``,
    (n,).

    The period is the median interval between changes. It is too long where new values equal old
    ones, as with a coarse resolution. Noise is the median difference of neighbouring new readings
    over 0.6745 sqrt(2), as for normal noise; a step of the load hardly moves it. A reading of a
    counter is the mean watts between two changes.
    """
    changes = np.flatnonzero(np.diff(values)) + 1
    if len(changes) < MIN_CHANGES:
        return Characteristics(None, None)
    intervals_s, readings_w = np.diff(np.asarray(times_s)[changes]), np.asarray(values)[changes]
    if counts_joules:
        readings_w = np.diff(readings_w) / intervals_s
    noise_w = stats.median(np.abs(np.diff(readings_w)).tolist()) / (0.6745 * math.sqrt(2.0))
    return Characteristics(stats.median(intervals_s.tolist()), noise_w)


def read_repeatedly(sensors: Sequence[Sensor], seconds: float = WATCH_S) -> List[TimeSeries]:
    """Read all sensors in turn for ``seconds`` after the first round, which may start them."""
    observed = [TimeSeries(sensor.read, sensor.counts_joules) for sensor in sensors]
    until_s = math.inf
    while sensors and time.monotonic() < until_s:
        for series in observed:
            series.take()
        until_s = min(until_s, time.monotonic() + seconds)
        time.sleep(POLL_S)
    for sensor in sensors:
        sensor.close()
    return observed


def sensor_facts(found: DiscoveredSensors, seconds: float = WATCH_S) -> Tuple[SensorFacts, ...]:
    """Facts of each sensor, the unavailable ones last."""
    missing = [SensorFacts(name, UNAVAILABLE, "", None, None, reason) for name, reason in found.missing]
    return (*map(_facts, found.sensors, read_repeatedly(found.sensors, seconds)), *missing)


def survey(root: Optional[str] = None) -> Tuple[SensorFacts, ...]:
    """Facts of the sensors of this device, or of a file tree, watched for WATCH_S."""
    return sensor_facts(discover(root))


def _facts(sensor: Sensor, series: TimeSeries) -> SensorFacts:
    values, reason = series.values, series.reason
    if values and (values[-1] - values[0] if sensor.counts_joules else max(values)) <= 0:
        reason = NOTHING_USED
    elif values:
        period_s, noise_w = estimate(series.times_s, values, sensor.counts_joules)
        return SensorFacts(sensor.name, sensor.source, sensor.covers, period_s, noise_w)
    return SensorFacts(sensor.name, UNAVAILABLE, sensor.covers, None, None, reason)
