"""Samples counters and power sensors in the background while something else runs."""

import math
import threading
import time
from typing import Callable, List, Optional

from profilers import records, stats
from profilers.counters import UNITS, Counters
from profilers.sensors import discover
from profilers.sensors.base import Sensor
from profilers.tree import Tree, Unavailable

PERIOD_S = 0.1
TOO_SHORT = "the window was too short to sample it"
STANDS_STILL = "it counted nothing: it stands still, or the window was shorter than its period"


class Series:
    """What one reader said and when (monotonic seconds), and how often it failed."""

    def __init__(self, read):
        # type: (Callable[[], float]) -> None
        self._read = read
        self.times_s = []  # type: List[float]
        self.values = []  # type: List[float]
        self.failures = 0
        self._reason = TOO_SHORT

    def take(self):
        # type: () -> None
        try:
            value = self._read()
        except Unavailable as error:
            self.failures += 1
            self._reason = str(error)
        else:
            self.times_s.append(time.monotonic())
            self.values.append(value)

    @property
    def usable(self):
        # type: () -> bool
        """Whether it answered, and at least as often as it failed."""
        return bool(self.values) and len(self.values) >= self.failures

    @property
    def reason(self):
        # type: () -> Optional[str]
        """Why it is not usable, or what was wrong although it is; None if nothing was."""
        if self.failures and self.values:
            reads = self.failures + len(self.values)
            return "%d of %d reads failed: %s" % (self.failures, reads, self._reason)
        return None if self.values else self._reason


class Sampler:
    """Counters and sensors of this device, or of the tree below ``root``; see ``profilers.sensors.discover``.

    ``start`` and ``stop`` bound a window, any number of them one after the other.
    """

    def __init__(self, root=None, period_s=PERIOD_S):
        # type: (Optional[str], float) -> None
        self._period_s = period_s
        self._counters = Counters(Tree(root))
        self._found = discover(root)
        self._stop = threading.Event()
        self._thread = None  # type: Optional[threading.Thread]

    def start(self):
        # type: () -> None
        """Begin a window."""
        assert self._thread is None, "stop the window before starting another"
        for name in self._counters.readers:
            Series(self._counters.readers[name]).take()  # loads count from here
        self._counter_series = {name: Series(read) for name, read in self._counters.readers.items()}
        self._sensor_series = [Series(sensor.read) for sensor in self._found.sensors]
        self._stop.clear()
        self._started_s = time.monotonic()
        for series in self._sensor_series:
            series.take()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)
        self._thread.start()

    def stop(self):
        # type: () -> records.Window
        """End the window: means, spreads and counts, or the reason why there are none."""
        assert self._thread is not None, "start a window before stopping it"
        self._stop.set()
        self._thread.join()
        self._thread = None
        self._take()
        duration_s = time.monotonic() - self._started_s
        self._counters.close()
        return records.Window(
            duration_s,
            {name: self._counter(name) for name in UNITS},
            tuple(power(sensor, series) for sensor, series in zip(self._found.sensors, self._sensor_series))
            + tuple(records.PowerReading(name, records.UNAVAILABLE, "", None, None, 0, reason)
                    for name, reason in self._found.missing))

    def _run(self):
        # type: () -> None
        due_s = self._started_s + self._period_s
        while not self._stop.wait(max(0.0, due_s - time.monotonic())):
            self._take()
            due_s = max(due_s + self._period_s, time.monotonic())

    def _take(self):
        # type: () -> None
        for series in self._sensor_series:
            series.take()
        for series in self._counter_series.values():
            series.take()

    def _counter(self, name):
        # type: (str) -> records.Reading
        if name not in self._counter_series:
            return records.Reading(UNITS[name], None, None, 0, self._counters.reasons[name])
        series = self._counter_series[name]
        if not series.usable:
            return records.Reading(UNITS[name], None, None, len(series.values), series.reason)
        return records.Reading(UNITS[name], stats.mean(series.values), _spread(series.values),
                               len(series.values), series.reason)


def power(sensor, series):
    # type: (Sensor, Series) -> records.PowerReading
    """Mean watts over the window: joules counted / seconds, or watts integrated by trapezoids / seconds.

    The standard deviation is that between samples. A sensor that failed more often than it answered is
    unavailable, with its reason, and so is one that says that nothing was used: no computer runs on nothing.
    """
    watts = _watts_between(sensor, series)
    lengths_s = [after - before for before, after in zip(series.times_s, series.times_s[1:])]
    mean = math.fsum(w * s for w, s in zip(watts, lengths_s)) / math.fsum(lengths_s) if watts else 0.0
    if not series.usable or mean <= 0.0:
        reason = series.reason or (STANDS_STILL if watts else TOO_SHORT)
        return records.PowerReading(sensor.name, records.UNAVAILABLE, sensor.covers, None, None,
                                    len(series.values), reason)
    return records.PowerReading(sensor.name, sensor.source, sensor.covers, mean, _spread(watts),
                                len(series.values), series.reason)


def _watts_between(sensor, series):
    # type: (Sensor, Series) -> List[float]
    """Watts in each interval between two samples."""
    pairs = zip(series.values, series.values[1:])
    if not sensor.counts_joules:
        return [(before + after) / 2.0 for before, after in pairs]
    spans = zip(series.times_s, series.times_s[1:])
    return [(after - before) / (end - begin) for (before, after), (begin, end) in zip(pairs, spans)]


def _spread(values):
    # type: (List[float]) -> Optional[float]
    return stats.stdev(values) if len(values) > 1 else None
