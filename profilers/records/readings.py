"""Readings are what a device has measured for a while: samples, counters, watts."""

from typing import Dict, NamedTuple, Optional, Tuple

UNAVAILABLE = "unavailable"


#: Source of watts from a power model.
MODEL = "model"


#: All sources of watts, and all that sensors are of: nothing ("") where one was not found.
SOURCES = ("counter", "sensor", MODEL, UNAVAILABLE)
COVERS = ("wall", "board", "module", "gpu", "cpu", "rail", "device", "")


class Samples(NamedTuple):
    """Raw values in the order of measurement; those of the warm-up are separate."""

    unit: str
    values: Tuple[float, ...]
    warmup: Tuple[float, ...] = ()


class Reading(NamedTuple):
    """Mean of one counter over a window, or the reason why there is none."""

    unit: str
    mean: Optional[float]
    stdev: Optional[float]
    count: int  # type: ignore[assignment]  # a key of the profile; it hides tuple.count
    reason: Optional[str] = None


class PowerReading(NamedTuple):
    """Watts of one sensor over a window, with their source and coverage.

    source: ``counter`` of joules, ``sensor`` of watts, ``model``
    or ``unavailable``.
    covers: ``wall``, ``board``, ``module``, ``gpu``, ``cpu`` or ``rail``; of a model of the
        operator's, ``device``.
    gap_s: seconds of the window without samples.
    period_s: median seconds between new values; None for fewer than two.
    relative_error: standard error of the mean as a share of it; None where all samples are equal.
    integral_error: standard error of the window's own joules as a share of them.
    """

    sensor: str
    source: str
    covers: str
    watts: Optional[float]
    stdev: Optional[float]
    count: int  # type: ignore[assignment]  # a key of the profile; it hides tuple.count
    reason: Optional[str] = None
    gap_s: float = 0.0
    period_s: Optional[float] = None
    relative_error: Optional[float] = None
    integral_error: Optional[float] = None


class Window(NamedTuple):
    """Counters and power of a device over a window of its monotonic clock.

    cpu_share: share of one core that sampling took.
    seconds: means over bins of equal length: about a second, or a 60th of a longer window; None for
    an empty one. Keys are names of counters, and "power:" with a sensor's name for watts.
    """

    duration_s: float
    counters: Dict[str, Reading]
    power: Tuple[PowerReading, ...]
    cpu_share: Optional[float] = None
    seconds: Dict[str, Tuple[Optional[float], ...]] = {}

    def check(self) -> None:
        """Raises ValueError where a sensor has watts but no source, or gaps beyond the window."""
        for reading in self.power:
            check_sensor(reading.sensor, reading.source, reading.covers)
            if reading.source == UNAVAILABLE and reading.watts is not None:
                raise ValueError("power: %s is unavailable and has %g W" % (reading.sensor, reading.watts))
            if reading.gap_s > 1.001 * self.duration_s:
                raise ValueError(
                    "power: %s has gaps of %g s in %g s" % (reading.sensor, reading.gap_s, self.duration_s)
                )


def check_sensor(name: str, source: str, covers: str) -> None:
    """Raises ValueError for a source or a coverage that no sensor has."""
    if source not in SOURCES or covers not in COVERS:
        raise ValueError("%s: no sensor has the source %r and covers %r" % (name, source, covers))


class StreamRate(NamedTuple):
    """How many samples arrive at a device in a second, as they were counted for some ``seconds``.

    error: relative standard error of the rate.
    sample_bytes: mean of a sample.
    """

    rate: float
    error: float
    seconds: float
    sample_bytes: float
