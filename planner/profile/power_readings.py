"""A window's watts are read from its power sensors, with their error and contradictions."""

import math
from collections.abc import Iterator, Sequence
from itertools import product
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
    sensors = _measured(_wholes(window)) if window else []
    return next((reading for covers in WHOLE for reading in sensors if reading.covers == covers), None)


def disagreements(window: Window) -> tuple[str, ...]:
    """How two sensors of the same whole, or a part and its whole, contradict each other.

    A wall plug feeds a board, a board a module, and a module its GPUs and processors.
    """
    exceeding = (
        f"{' + '.join(map(_text, inner))} exceeds {_text(outer)}, which contains it"
        for inner, outer in _exceeding(window)
    )
    return (*_differing(list(filter(works, window.power))), *exceeding)


def rejected(idle: Window | None, busy: Window | None) -> tuple[str, ...]:
    """The sensors that read what cannot be, while training or beside what they read idle."""
    readings = [each for each in busy.power if each.covers in (*WHOLE, *PARTS)] if busy else []
    powerless = (each for each in readings if each.watts is not None and not works(each))
    return (
        *(f"{_text(pair[1])}: {why}" for pair in _pairs(idle, busy) if (why := _contradiction(*pair))),
        *(f"{_text(each)}: no device trains on that; see how it is connected" for each in powerless),
    )


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
    if idle is None or busy is None:
        return None
    able = {reading.sensor for reading in _wholes(idle)} & {reading.sensor for reading in _wholes(busy)}
    pairs = [pair for pair in _pairs(idle, busy) if pair[1].sensor in able and not _contradiction(*pair)]
    best = next((pair for covers in WHOLE for pair in pairs if pair[1].covers == covers), None)
    return _total([best], [best[1].covers]) if best else None


def watts_of_parts(idle: Window | None, busy: Window | None) -> Wattage | None:
    """Idle and busy watts of the sensors of parts, summed.

    None without one, and where a part is missing from the sum: one works in one window only, or
    fails beside others of its kind.
    """
    parts = [pair for pair in _pairs(idle, busy) if pair[1].covers in PARTS and not _is_stuck(*pair)]
    covered = [part for part in PARTS if any(reading.covers == part for _, reading in parts)]
    every = [reading for window in (idle, busy) if window for reading in window.power if reading.covers in PARTS]
    known = {reading.sensor for reading in every if works(reading) or reading.covers in covered}
    if not parts or known > {reading.sensor for _, reading in parts}:
        return None
    total = _total(parts, covered)
    return None if _falls(total.idle_w, total.busy_w) else total


def _wholes(window: Window) -> list[PowerReading]:
    """The sensors of the whole that work, without those that what they contain exceeds."""
    exceeded = {outer.sensor for _, outer in _exceeding(window)}
    return [each for each in window.power if works(each) and each.covers in WHOLE and each.sensor not in exceeded]


def _pairs(idle: Window | None, busy: Window | None) -> list[tuple[PowerReading, PowerReading]]:
    """The readings of each sensor that works in both windows."""
    if idle is None or busy is None:
        return []
    before = {reading.sensor: reading for reading in idle.power if works(reading)}
    return [(before[each.sensor], each) for each in busy.power if works(each) and each.sensor in before]


def _contradiction(idle: PowerReading, busy: PowerReading) -> str | None:
    """Why two readings of a sensor cannot both be right; None where they can."""
    if _is_stuck(idle, busy):
        return f"it reads {idle.watts:g} W idle as well"
    return f"it reads more idle, {idle.watts:.3g} W" if _falls(idle.watts or 0.0, busy.watts or 0.0) else None


def _is_stuck(idle: PowerReading, busy: PowerReading) -> bool:
    return idle is not busy and idle.watts == busy.watts and idle.stdev == busy.stdev == 0.0


def _falls(idle_w: float, busy_w: float) -> bool:
    return busy_w < (1 - DISAGREEMENT) * idle_w


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


def _exceeding(window: Window) -> Iterator[tuple[list[PowerReading], PowerReading]]:
    """Parts, or a whole, and the whole around them that they exceed; the innermost come first."""
    working = list(filter(works, window.power))
    wholes = [[each for each in working if each.covers == covers] for covers in reversed(WHOLE)]
    levels = [[each for each in working if each.covers in PARTS], *(_measured(level)[:1] for level in wholes)]
    for number, outers in enumerate(wholes):
        for inner, outer in product(filter(None, levels[: number + 1]), outers):
            if _sum(inner)[0] > (1 + DISAGREEMENT) * _sum([outer])[0]:
                yield inner, outer


def _measured(readings: Sequence[PowerReading]) -> list[PowerReading]:
    return [reading for reading in readings if reading.source != MODEL]


def _text(reading: PowerReading) -> str:
    return f"{reading.covers} ({reading.sensor}) {reading.watts:.3g} W"


def unavailable(window: Window, idle: Window | None = None) -> Provenance:
    """The provenance of watts that are unknown in a window, with the reasons there and idle."""
    readings = (*window.power, *(idle.power if idle else ()))
    told = [f"{reading.sensor}: {reading.reason}" for reading in readings if reading.reason]
    reasons = "; ".join((*dict.fromkeys(told), *rejected(idle, window)))
    why = f"no idle_watts and max_watts in the fleet file, and no sensor that works ({reasons or 'none was found'})"
    return Provenance(UNAVAILABLE, detail=why)
