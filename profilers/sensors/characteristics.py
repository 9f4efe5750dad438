"""This module measures the update period and the noise of power sensors."""

import math
import time
from typing import List, NamedTuple, Optional, Sequence, Tuple

from profilers import records, stats
from profilers.file_tree import Unavailable
from profilers.sensors import discover
from profilers.sensors.base import DiscoveredSensors, Sensor

#: Duration and interval of reading. No shorter period than the interval can be seen.
WATCH_S = 2.0
POLL_S = 0.005
#: Fewest changes of value from which a period is estimated.
MIN_CHANGES = 4
NOTHING_USED = "it reads zero or does not count: it stands still"


class Characteristics(NamedTuple):
    """Each is None where too few changes were seen.

    period_s: seconds between new values.
    noise_w: standard deviation of a reading.
    """

    period_s: Optional[float]
    noise_w: Optional[float]


class ObservedReadings(NamedTuple):
    """Values of a sensor, their monotonic times, and the reasons of failed reads."""

    times_s: List[float]
    values: List[float]
    reasons: List[str]


def estimate(times_s: Sequence[float], values: Sequence[float], counts_joules: bool) -> Characteristics:
    """Characteristics of a sensor that was read much faster than it updates.

    times_s: monotonic seconds of the reads, (n,).
    values: watts, or joules where ``counts_joules``, (n,).

    The period is the median interval between changes. It is too long where new values equal old
    ones, as with a coarse resolution.

    Noise is the median difference of neighbouring new readings over 0.6745 sqrt(2), as for normal
    noise; a step of the load hardly moves it. For a counter, a reading is the mean watts between
    two changes.
    """
    changes = [index for index in range(1, len(values)) if values[index] != values[index - 1]]
    if len(changes) < MIN_CHANGES:
        return Characteristics(None, None)
    pairs = list(zip(changes, changes[1:]))
    intervals_s = [times_s[after] - times_s[before] for before, after in pairs]
    if counts_joules:
        readings_w = [
            (values[after] - values[before]) / length_s for (before, after), length_s in zip(pairs, intervals_s)
        ]
    else:
        readings_w = [values[index] for index in changes]
    steps_w = [abs(after - before) for before, after in zip(readings_w, readings_w[1:])]
    return Characteristics(stats.median(intervals_s), stats.median(steps_w) / (0.6745 * math.sqrt(2.0)))


def read_repeatedly(sensors: Sequence[Sensor], seconds: float = WATCH_S) -> List[ObservedReadings]:
    """Read all sensors in turn for ``seconds`` after the first round, which may start them."""
    observed = [ObservedReadings([], [], []) for _ in sensors]
    until_s = math.inf
    while sensors and time.monotonic() < until_s:
        for sensor, readings in zip(sensors, observed):
            try:
                value = sensor.read()
            except Unavailable as error:
                readings.reasons.append(str(error))
            else:
                readings.times_s.append(time.monotonic())
                readings.values.append(value)
        until_s = min(until_s, time.monotonic() + seconds)
        time.sleep(POLL_S)
    for sensor in sensors:
        sensor.close()
    return observed


def sensor_facts(found: DiscoveredSensors, seconds: float = WATCH_S) -> Tuple[records.SensorFacts, ...]:
    """Facts of each sensor, the unavailable ones last."""
    available = [
        _facts(sensor, readings) for sensor, readings in zip(found.sensors, read_repeatedly(found.sensors, seconds))
    ]
    return tuple(
        available
        + [records.SensorFacts(name, records.UNAVAILABLE, "", None, None, reason) for name, reason in found.missing]
    )


def survey(root: Optional[str] = None) -> Tuple[records.SensorFacts, ...]:
    """Facts of the sensors of this device, or of a file tree, watched for WATCH_S."""
    return sensor_facts(discover(root))


def _facts(sensor: Sensor, readings: ObservedReadings) -> records.SensorFacts:
    reason = _reason(readings.values, sensor.counts_joules, readings.reasons)
    if reason is not None:
        return records.SensorFacts(sensor.name, records.UNAVAILABLE, sensor.covers, None, None, reason)
    figures = estimate(readings.times_s, readings.values, sensor.counts_joules)
    return records.SensorFacts(sensor.name, sensor.source, sensor.covers, figures.period_s, figures.noise_w)


def _reason(values: Sequence[float], counts_joules: bool, reasons: Sequence[str]) -> Optional[str]:
    """Why a discovered sensor cannot be used; None if it can."""
    if not values:
        return reasons[-1] if reasons else "it was not read"
    used = values[-1] - values[0] if counts_joules else max(values)
    return None if used > 0 else NOTHING_USED
