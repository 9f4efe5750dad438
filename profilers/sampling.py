"""This module samples counters and power sensors in the background of a measurement."""

import threading
import time
from typing import Dict, List, NamedTuple, Optional, Tuple

from profilers import cpu_quota, energy, stats
from profilers.counters import UNITS, Counters
from profilers.energy import Span
from profilers.file_tree import FileTree
from profilers.records.readings import UNAVAILABLE, PowerReading, Reading, Window
from profilers.sensor_faults import fault, most_watts, since_last_fall
from profilers.sensors import discover
from profilers.sensors.base import Sensor
from profilers.thread_times import thread_cpu_s
from profilers.time_series import MEMORY_S, TOO_SHORT, TimeSeries

PERIOD_S = 0.1
#: Share of the usable cores, of one at most, that sampling may take. A longer period, up to
#: MAX_PERIOD_S, keeps it.
CPU_SHARE = 0.01
MAX_PERIOD_S = 1.0
#: Share of gaps in a window from which on its watts carry a remark.
GAP_SHARE = 0.05
STANDS_STILL = "it counted nothing: it stands still, or the window was shorter than its period"
#: Seconds before a window in which a log is searched for the last sample before it.
LOOKBACK_S = 10.0
NOTHING_LOGGED = "its log holds nothing of this window"


class SamplingPeriod:
    """The sampling period: ``least_s``, or longer to keep the mean cost below a share of a core."""

    def __init__(self, least_s: float, share: float) -> None:
        self._least_s = least_s
        self._share = share
        self._rounds = 0
        self.spent_s = 0.0

    def add_round(self, cpu_s: float) -> None:
        self._rounds += 1
        self.spent_s += cpu_s

    @property
    def period_s(self) -> float:
        needed_s = self.spent_s / self._rounds / self._share if self._rounds else 0.0
        return max(self._least_s, min(MAX_PERIOD_S, needed_s))


class _OpenWindow(NamedTuple):
    """A window that has not ended. spent_s: what sampling took before it."""

    began_s: float
    spent_s: float
    counters: Dict[str, TimeSeries]
    power: List[TimeSeries]


class Sampler:
    """Samples the counters and sensors of this device, or of the file tree at ``root``.

    ``start`` and ``stop`` bound a window; any number of windows may follow each other.
    """

    def __init__(self, root: Optional[str] = None, period_s: float = PERIOD_S) -> None:
        self._sampling_period = SamplingPeriod(period_s, CPU_SHARE * min(1.0, cpu_quota.usable_cores()))
        self._counters = Counters(FileTree(root))
        self._found = discover(root)
        power = [TimeSeries(sensor.read, sensor.counts_joules) for sensor in self._found.sensors]
        self._open = self._opened(time.monotonic(), power)
        self._taking = threading.Lock()
        self._stop = threading.Event()
        self._thread: Optional[threading.Thread] = None

    @property
    def reads_power(self) -> bool:
        """Whether there is a power sensor."""
        return bool(self._found.sensors)

    def start(self) -> None:
        """Begin a window."""
        assert self._thread is None, "stop the window before starting another"
        for name in self._counters.readers:
            TimeSeries(self._counters.readers[name]).take()  # loads count from here
        power = [
            TimeSeries(sensor.read, sensor.counts_joules, before)
            for sensor, before in zip(self._found.sensors, self._open.power)
        ]
        self._open = self._opened(time.monotonic(), power)
        for series in self._open.power:
            series.take()
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)
        self._thread.start()

    def stop(self) -> Window:
        """End the window: means, spreads and counts, or the reasons why there are none."""
        assert self._thread is not None, "start a window before stopping it"
        self._stop.set()
        self._thread.join()
        self._thread = None
        self._take()
        window = self._window(self._open, time.monotonic())
        self._counters.close()
        for sensor in self._found.sensors:
            sensor.close()
        return window

    def turn(self) -> Window:
        """End the window; the next one begins with its last sample. Sampling goes on."""
        assert self._thread is not None, "start a window before turning to the next"
        with self._taking:
            self._take()
            ended, now_s = self._open, time.monotonic()
            self._open = self._opened(now_s, [series.continued() for series in ended.power])
        return self._window(ended, now_s)

    def _opened(self, began_s: float, power: List[TimeSeries]) -> _OpenWindow:
        counters = {name: TimeSeries(read) for name, read in self._counters.readers.items()}
        return _OpenWindow(began_s, self._sampling_period.spent_s, counters, power)

    def _window(self, ended: _OpenWindow, end_s: float) -> Window:
        span = Span(ended.began_s, end_s, self._sampling_period.period_s)
        sensors = self._found.sensors
        series = [window_series(sensor, each, span) for sensor, each in zip(sensors, ended.power)]
        readings = tuple(power_reading(sensor, each, span) for sensor, each in zip(sensors, series))
        missing = tuple(
            PowerReading(name, UNAVAILABLE, "", None, None, 0, reason) for name, reason in self._found.missing
        )
        return Window(
            span.end_s - span.begin_s,
            {name: self._counter(name, ended.counters) for name in UNITS},
            readings + missing,
            (self._sampling_period.spent_s - ended.spent_s) / (span.end_s - span.begin_s),
            _bin_means(span, ended.counters, series, readings),
        )

    def _run(self) -> None:
        due_s = self._open.began_s + self._sampling_period.period_s
        before_s = 0.0  # what a thread has used when it begins
        while not self._stop.wait(max(0.0, due_s - time.monotonic())):
            with self._taking:
                self._take()
            now_s = thread_cpu_s()
            self._sampling_period.add_round(now_s - before_s)
            before_s = now_s
            due_s = max(due_s + self._sampling_period.period_s, time.monotonic())

    def _take(self) -> None:
        for series in self._open.power:
            series.take()
        for series in self._open.counters.values():
            series.take()

    def _counter(self, name: str, counters: Dict[str, TimeSeries]) -> Reading:
        if name not in counters:
            return Reading(UNITS[name], None, None, 0, self._counters.reasons[name])
        series = counters[name]
        if not series.usable:
            return Reading(UNITS[name], None, None, len(series.values), series.reason)
        return Reading(
            UNITS[name], stats.mean(series.values), _spread(series.values), len(series.values), series.reason
        )


def _bin_means(
    span: Span, counters: Dict[str, TimeSeries], power: List[TimeSeries], readings: Tuple[PowerReading, ...]
) -> Dict[str, Tuple[Optional[float], ...]]:
    """Means over bins, by the name of the series; see ``Window``."""
    if not energy.bin_count(span):
        return {}
    rows = {
        name: energy.bin_means(span, series.times_s, series.values)
        for name, series in counters.items()
        if series.usable
    }
    for reading, series in zip(readings, power):
        if reading.watts is not None:
            used_j = energy.cumulative_joules(series.times_s, series.values, series.counts_joules)
            rows["power:" + reading.sensor] = energy.bin_watts(span, series.times_s, used_j)
    return rows


def window_series(sensor: Sensor, series: TimeSeries, span: Span) -> TimeSeries:
    """The series of a sensor over a window: of its own log, unless most reads failed."""
    logged = sensor.history(span.begin_s - MEMORY_S, span.end_s) if series.usable else None
    if logged is None:
        return series
    samples = list(zip(*logged))
    past = [sample for sample in samples if sample[0] < span.begin_s]
    recent = [sample for sample in samples if sample[0] >= span.begin_s - LOOKBACK_S]
    return TimeSeries.of(energy.clip_to_begin(span.begin_s, recent), past, series.reason or NOTHING_LOGGED)


def power_reading(sensor: Sensor, series: TimeSeries, span: Span) -> PowerReading:
    """Mean watts over the window: joules, counted or integrated by trapezoids, over seconds.

    The standard deviation is that of the samples. A sensor is unavailable, with a reason, where it
    failed more often than it answered, where it has a fault (``profilers.sensor_faults``), and
    where its mean is not above zero: no computer runs on nothing.
    """
    mean_w, reason = _mean_watts(sensor, series)
    if mean_w is None:
        return PowerReading(sensor.name, UNAVAILABLE, sensor.covers, None, None, len(series.values), reason)
    watts = energy.sample_watts(series.times_s, series.values, series.counts_joules)
    lengths_s = [after - before for before, after in zip(series.times_s, series.times_s[1:])]
    usual = span._replace(period_s=max(span.period_s, stats.median(lengths_s)))
    gap_s, duration_s = energy.gap_s(usual, series.times_s), span.end_s - span.begin_s
    missed = 0.0 if series.counts_joules else min(1.0, gap_s / duration_s)  # a counter counts on
    return PowerReading(
        sensor.name,
        sensor.source,
        sensor.covers,
        mean_w,
        _spread(watts),
        len(series.values),
        _remark(series.reason, gap_s, duration_s),
        gap_s,
        energy.change_period_s(series.times_s, series.values),
        energy.relative_error(watts, mean_w, missed),
        energy.integral_error(series.times_s, series.values, series.counts_joules),
    )


def _mean_watts(sensor: Sensor, series: TimeSeries) -> Tuple[Optional[float], Optional[str]]:
    if not series.usable:
        return None, series.reason
    found_fault = _fault(sensor, series)
    if found_fault is not None:
        return None, found_fault + "; flagged and not used"
    lasted_s = series.times_s[-1] - series.times_s[0]
    if lasted_s <= 0.0:
        return None, series.reason or TOO_SHORT
    mean_w = float(energy.cumulative_joules(series.times_s, series.values, series.counts_joules)[-1]) / lasted_s
    return (mean_w, None) if mean_w > 0.0 else (None, series.reason or STANDS_STILL)


def _fault(sensor: Sensor, series: TimeSeries) -> Optional[str]:
    """A fault in the window alone, for a sensor may get stuck, else in all that is remembered."""
    remembered = series.remembered()
    spans = (series.times_s, series.values), since_last_fall(*remembered) if series.counts_joules else remembered
    limits = sensor.repeat_limit_s, sensor.whole_watts_limit_s, most_watts(sensor.covers)
    faults = (fault(times_s, values, series.counts_joules, *limits) for times_s, values in spans)
    return next(filter(None, faults), None)


def _remark(reason: Optional[str], gap_s: float, duration_s: float) -> Optional[str]:
    if gap_s <= GAP_SHARE * duration_s:
        return reason
    gaps = "no samples for %.1f of %.1f s" % (gap_s, duration_s)
    return gaps if reason is None else reason + "; " + gaps


def _spread(values: List[float]) -> Optional[float]:
    return stats.stdev(values) if len(values) > 1 else None
