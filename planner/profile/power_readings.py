"""A window's watts are read from its power sensors, with their error and contradictions."""

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from planner.provenance import PARTS, WHOLE, Provenance
from profilers.records.readings import MODEL, UNAVAILABLE, PowerReading, Window
from profilers.stats import Z95

#: Two sensors of the same may differ by this share, and a part may exceed the whole by it.
DISAGREEMENT = 0.05


class Wattage(NamedTuple):
    """Mean watts idle and while training, NaN where unknown; errors are relative, 0 if unknown."""

    idle_w: float
    busy_w: float
    idle_error: float
    busy_error: float
    provenance: Provenance


class WindowWatts(NamedTuple):
    """Mean watts of a window and their relative standard error, None where unknown."""

    watts: float | None
    error: float | None
    provenance: Provenance


def window_watts(window: Window) -> WindowWatts | None:
    """The watts of the sensors that cover most; None where no sensor works."""
    return whole_watts(window) or parts_watts(window)


def whole_watts(window: Window) -> WindowWatts | None:
    """The watts of a sensor of the whole device; None without one."""
    return _busy(watts_of_whole(window, window))


def parts_watts(window: Window) -> WindowWatts | None:
    """The watts of the sensors of parts, summed; None without one."""
    return _busy(watts_of_parts(window, window))


def _busy(found: Wattage | None) -> WindowWatts | None:
    return None if found is None else WindowWatts(found.busy_w, found.busy_error or None, found.provenance)


def whole_reading(window: Window | None) -> PowerReading | None:
    """The reading that ``whole_watts`` uses, unless a power model estimated it."""
    readings = window.power if window else ()
    sensors = [each for each in readings if works(each) and each.source != MODEL]
    return next((reading for covers in WHOLE for reading in sensors if reading.covers == covers), None)


def disagreements(window: Window) -> tuple[str, ...]:
    """How two sensors of the same whole, or a part and its whole, contradict each other.

    A wall plug feeds a board, a board a module, and a module its GPUs and processors.
    """
    working = list(filter(works, window.power))
    return (*_differing(working), *_exceeding(working))


def flagged(window: Window | None) -> tuple[str, ...]:
    """The sensors that were not used, failed at times or have gaps, in words."""
    readings = window.power if window else ()
    return tuple(f"{reading.sensor}: {reading.reason}" for reading in readings if reading.covers and reading.reason)


def as_integral(window: Window) -> Window:
    """The window with the errors of its own joules in place of those of the mean of all windows."""
    power = (reading._replace(relative_error=reading.integral_error or 0.0) for reading in window.power)
    return window._replace(power=tuple(power))


def uncertainty(error: float | None) -> float | None:
    """Half the 95 % interval of a relative standard error, as a share; None if unknown."""
    return Z95 * error if error else None


def watts_of_whole(idle: Window | None, busy: Window | None) -> Wattage | None:
    """Idle and busy watts of the best sensor of the whole device; None without one."""
    pairs = _pairs(idle, busy)
    best = next((pair for covers in WHOLE for pair in pairs if pair[1].covers == covers), None)
    return _total([best], [best[1].covers]) if best else None


def watts_of_parts(idle: Window | None, busy: Window | None) -> Wattage | None:
    """Idle and busy watts of the sensors of parts, summed; None without one."""
    parts = [pair for pair in _pairs(idle, busy) if pair[1].covers in PARTS]
    covered = [part for part in PARTS if any(reading.covers == part for _, reading in parts)]
    return _total(parts, covered) if parts else None


def _pairs(idle: Window | None, busy: Window | None) -> list[tuple[PowerReading, PowerReading]]:
    """The readings of each sensor that works in both windows, and is not stuck at one value."""
    if idle is None or busy is None:
        return []
    before = {reading.sensor: reading for reading in idle.power if works(reading)}
    pairs = [(before[each.sensor], each) for each in busy.power if works(each) and each.sensor in before]
    return pairs if idle is busy else [pair for pair in pairs if not _is_stuck(*pair)]


def _is_stuck(idle: PowerReading, busy: PowerReading) -> bool:
    return idle.watts == busy.watts and idle.stdev == busy.stdev == 0.0


def works(reading: PowerReading) -> bool:
    """Whether a sensor gave watts; one that says 0 W does not work, for no device runs on that."""
    return reading.watts is not None and reading.watts > 0


def _total(pairs: Sequence[tuple[PowerReading, PowerReading]], covers: Sequence[str]) -> Wattage:
    (idle_w, idle_error), (busy_w, busy_error) = (_sum(readings) for readings in zip(*pairs, strict=True))
    provenance = Provenance.of_sensors((busy.source for _, busy in pairs), covers)
    return Wattage(idle_w, busy_w, idle_error, busy_error, provenance)


def _sum(readings: Sequence[PowerReading]) -> tuple[float, float]:
    """The summed watts of sensors, above 0, and their relative standard error."""
    total_w = math.fsum(reading.watts or 0.0 for reading in readings)
    return total_w, math.hypot(*((reading.watts or 0.0) * error_of(reading) for reading in readings)) / total_w


def error_of(reading: PowerReading) -> float:
    """The relative standard error of a mean: its own, or else by its spread, 0 where unknown."""
    if reading.relative_error is not None or not reading.watts:
        return reading.relative_error or 0.0
    return (reading.stdev or 0.0) / math.sqrt(max(1, reading.count)) / reading.watts


def _differing(works: Sequence[PowerReading]) -> Iterator[str]:
    for covers in WHOLE:
        same = sorted((reading for reading in works if reading.covers == covers), key=lambda each: each.watts or 0.0)
        if len(same) > 1 and (same[-1].watts or 0.0) > (1 + DISAGREEMENT) * (same[0].watts or 0.0):
            yield f"sensors of the {covers} disagree: {_text(same[0])}, {_text(same[-1])}"


def _exceeding(works: Sequence[PowerReading]) -> Iterator[str]:
    """Each part that exceeds the whole; the innermost come first."""
    levels = [[each for each in works if each.covers in PARTS]]
    levels += [[each for each in works if each.covers == covers][:1] for covers in reversed(WHOLE)]
    for inner, outer in combinations(filter(None, levels), 2):
        if _sum(inner)[0] > (1 + DISAGREEMENT) * _sum(outer)[0]:
            yield f"{' + '.join(map(_text, inner))} exceeds {_text(outer[0])}, which contains it"


def _text(reading: PowerReading) -> str:
    return f"{reading.covers} ({reading.sensor}) {reading.watts:.3g} W"


def unavailable(window: Window) -> Provenance:
    """The provenance of unknown watts, with the reasons."""
    reasons = "; ".join(f"{reading.sensor}: {reading.reason}" for reading in window.power if reading.reason)
    why = f"no idle_watts and max_watts in the fleet file, and no sensor that works ({reasons or 'none was found'})"
    return Provenance(UNAVAILABLE, detail=why)
