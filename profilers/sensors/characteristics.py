"""How a sensor behaves, measured before it is trusted: how often it has a new value, and how those shake."""

import math
import time
from typing import List, NamedTuple, Optional, Sequence, Tuple

from profilers import records, stats
from profilers.file_tree import Unavailable
from profilers.sensors import discover
from profilers.sensors.base import Found, Sensor

#: For how long, and how often, sensors are read. A period shorter than the latter shows as the latter.
WATCH_S = 2.0
POLL_S = 0.005
#: Changes of value that a period is told from, at least.
CHANGES = 4
NOTHING_USED = "it says that nothing is used: it stands still"


class Characteristics(NamedTuple):
    """Of a sensor, each None where too few changes were seen.

    period_s: time between new values. noise_w: standard deviation of a reading from the next one's, over sqrt(2).
    resolution_w: smallest step between readings; none of a counter, whose steps are joules.
    """

    period_s: Optional[float]
    noise_w: Optional[float]
    resolution_w: Optional[float]


class ObservedReadings(NamedTuple):
    """What a sensor said, at which monotonic times, and why it did not."""

    times_s: List[float]
    values: List[float]
    reasons: List[str]


def estimate(times_s: Sequence[float], values: Sequence[float], counts_joules: bool) -> Characteristics:
    """Of a sensor that was read much faster than it has new values.

    times_s, values: as read; values in W, or J where ``counts_joules``. The period is the median interval between
    changes: too long by as much as new values equal old ones, which coarse steps bring about. Noise comes from the
    median of the differences between neighbouring new readings (a counter's: its mean watts between changes),
    which is 0.6745 sqrt(2) standard deviations of normal noise and hardly moved by a step of the load.
    """
    changes = [index for index in range(1, len(values)) if values[index] != values[index - 1]]
    if len(changes) < CHANGES:
        return Characteristics(None, None, None)
    pairs = list(zip(changes, changes[1:]))
    intervals_s = [times_s[after] - times_s[before] for before, after in pairs]
    if counts_joules:
        readings_w = [
            (values[after] - values[before]) / length_s for (before, after), length_s in zip(pairs, intervals_s)
        ]
    else:
        readings_w = [values[index] for index in changes]
    steps_w = [abs(after - before) for before, after in zip(readings_w, readings_w[1:])]
    noise_w = stats.median(steps_w) / (0.6745 * math.sqrt(2.0))
    return Characteristics(stats.median(intervals_s), noise_w, None if counts_joules else min(steps_w))


def watch(sensors: Sequence[Sensor], seconds: float = WATCH_S) -> List[ObservedReadings]:
    """Read all sensors in turn, again and again, for that long after the first round, in which some only start; not at
    all where there are none.
    """
    watched = [ObservedReadings([], [], []) for _ in sensors]
    until_s = math.inf
    while sensors and time.monotonic() < until_s:
        for sensor, seen in zip(sensors, watched):
            try:
                value = sensor.read()
            except Unavailable as error:
                seen.reasons.append(str(error))
            else:
                seen.times_s.append(time.monotonic())
                seen.values.append(value)
        until_s = min(until_s, time.monotonic() + seconds)
        time.sleep(POLL_S)
    for sensor in sensors:
        sensor.close()
    return watched


def facts(found: Found, seconds: float = WATCH_S) -> Tuple[records.SensorFacts, ...]:
    """What there is to tell of each sensor, the missing ones last."""
    there = [_facts(sensor, seen) for sensor, seen in zip(found.sensors, watch(found.sensors, seconds))]
    return tuple(
        there
        + [records.SensorFacts(name, records.UNAVAILABLE, "", None, None, reason) for name, reason in found.missing]
    )


def survey(root: Optional[str] = None) -> Tuple[records.SensorFacts, ...]:
    """Find the sensors of this device, or of a tree, and watch them: WATCH_S where there are any."""
    return facts(discover(root))


def _facts(sensor: Sensor, seen: ObservedReadings) -> records.SensorFacts:
    reason = _reason(seen.values, sensor.counts_joules, seen.reasons)
    if reason is not None:
        return records.SensorFacts(sensor.name, records.UNAVAILABLE, sensor.covers, None, None, reason)
    known = estimate(seen.times_s, seen.values, sensor.counts_joules)
    return records.SensorFacts(sensor.name, sensor.source, sensor.covers, known.period_s, known.noise_w)


def _reason(values: Sequence[float], counts_joules: bool, reasons: Sequence[str]) -> Optional[str]:
    """Why a sensor is of no use although it was found."""
    if not values:
        return reasons[-1] if reasons else "it was not read"
    used = values[-1] - values[0] if counts_joules else max(values)
    return None if used > 0 else NOTHING_USED
