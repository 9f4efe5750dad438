"""The watts of many windows are joined to means and their errors, in a memory that is bounded."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from planner.profile.power_readings import error_of, works
from profilers.records.readings import PowerReading, Reading, Window
from profilers.stats import effective_count, stdev

#: Means of a sensor that are kept, by whose spread the error of their mean is told.
MOST_MEANS = 64


class SensorMean(NamedTuple):
    """A sensor's mean over so many seconds of windows in which it works."""

    seconds: float
    reading: PowerReading


class SensorHistory:
    """A sensor's means over equally many windows each: twice as many whenever there are too many.

    Seconds and joules of all windows stay as they are.
    """

    def __init__(self) -> None:
        self._means: list[SensorMean] = []
        self._windows_each = 1
        self._windows_in_last = 0

    def __len__(self) -> int:
        return len(self._means)

    def add(self, mean: SensorMean) -> None:
        """Add a window."""
        if self._means and self._windows_in_last < self._windows_each:
            self._means[-1] = joined((self._means[-1], mean))
            self._windows_in_last += 1
            return
        if len(self._means) == MOST_MEANS:
            pairs = zip(self._means[::2], self._means[1::2], strict=True)
            self._means = [joined(pair) for pair in pairs]
            self._windows_each *= 2
        self._means.append(mean)
        self._windows_in_last = 1

    def mean(self) -> PowerReading:
        """The mean of all. The error joins the spread between means with each one's own error."""
        whole = joined(self._means).reading
        means_w = [each.reading.watts or 0.0 for each in self._means]
        spread_w = stdev(means_w) if len(means_w) > 1 else 0.0
        between = spread_w / math.sqrt(effective_count(means_w)) / (whole.watts or 1.0) if spread_w else 0.0
        return whole._replace(relative_error=math.hypot(whole.relative_error or 0.0, between) or None)


class PowerHistory:
    """The watts of a member over its run, sensor by sensor."""

    def __init__(self) -> None:
        self._sensors: dict[tuple[str, str], SensorHistory] = defaultdict(SensorHistory)
        self._silent: dict[str, PowerReading] = {}
        self._seconds = 0.0

    def add(self, window: Window) -> None:
        """Add a window."""
        self._seconds += window.duration_s
        for reading in window.power:
            if works(reading):
                self._sensors[reading.sensor, reading.covers].add(SensorMean(window.duration_s, reading))
            else:
                self._silent[reading.sensor] = reading

    def average(self) -> Window:
        """One window with the mean of each sensor over those in which it works.

        Of a sensor that works in none the last reason stays.
        """
        means = [sensor.mean() for sensor in self._sensors.values()]
        silent = self._silent.keys() - {mean.sensor for mean in means}
        return Window(self._seconds, {}, (*means, *(self._silent[name] for name in sorted(silent))))


def average(windows: Iterable[Window]) -> Window:
    """As ``PowerHistory.average``."""
    history = PowerHistory()
    for window in windows:
        history.add(window)
    return history.average()


def joined(means: Sequence[SensorMean]) -> SensorMean:
    """One mean over all of them, with each one's own error."""
    seconds = math.fsum(mean.seconds for mean in means)
    used_j = [mean.seconds * (mean.reading.watts or 0.0) for mean in means]
    errors_j = (joules * error_of(mean.reading) for joules, mean in zip(used_j, means, strict=True))
    reading = means[0].reading._replace(
        watts=math.fsum(used_j) / seconds, stdev=None, count=sum(mean.reading.count for mean in means), reason=None,
        gap_s=math.fsum(mean.reading.gap_s for mean in means),
        relative_error=math.hypot(*errors_j) / math.fsum(used_j) or None,
    )  # fmt: skip
    return SensorMean(seconds, reading)


def joined_windows(first: Window, second: Window) -> Window:
    """Two windows that follow each other as one, without the means of its seconds."""
    counters = {
        name: _joined_counter(first.counters[name], reading) if name in first.counters else reading
        for name, reading in {**first.counters, **second.counters}.items()
    }
    return average((first, second))._replace(counters=counters, cpu_share=second.cpu_share)


def _joined_counter(first: Reading, second: Reading) -> Reading:
    """A mean by the number of samples; that of the one that has any."""
    if first is second or first.mean is None or second.mean is None:
        return first if second.mean is None else second
    count = first.count + second.count
    mean = (first.mean * first.count + second.mean * second.count) / count if count else second.mean
    return second._replace(mean=mean, stdev=None, count=count)
