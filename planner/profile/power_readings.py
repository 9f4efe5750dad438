"""Power sensors of a window are read: which one counts, how far it may be off, and where two contradict."""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from planner.provenance import PARTS, WHOLE, Provenance
from profilers.records import EMULATED_MODEL, MODEL, UNAVAILABLE, PowerReading, Window
from profilers.stats import Z95, effective_count, stdev

#: By how much two sensors may differ that should agree, or a part may exceed what contains it, as a share.
DISAGREEMENT = 0.05


class Wattage(NamedTuple):
    """Mean watts idle and while training, NaN where unknown; their relative standard errors, 0 where unknown."""

    idle_w: float
    busy_w: float
    idle_error: float
    busy_error: float
    provenance: Provenance


class WindowWatts(NamedTuple):
    """Mean watts, None where unknown; their relative standard error, None where unknown; where they come from."""

    watts: float | None
    error: float | None
    provenance: Provenance


def window_watts(window: Window) -> WindowWatts | None:
    """What the sensors that cover most say of a window; None where none gave any."""
    return whole_watts(window) or parts_watts(window)


def whole_watts(window: Window) -> WindowWatts | None:
    """What a sensor of the whole device says of a window."""
    return _reading(_from_whole(window, window))


def whole_reading(window: Window | None) -> PowerReading | None:
    """The sensor that ``whole_watts`` goes by, and no power model."""
    works = [reading for reading in window.power if _works(reading)] if window else []
    sensors = [reading for reading in works if reading.source not in (MODEL, EMULATED_MODEL)]
    return next((reading for covers in WHOLE for reading in sensors if reading.covers == covers), None)


def parts_watts(window: Window) -> WindowWatts | None:
    """What sensors of its parts say of a window."""
    return _reading(_from_parts(window, window))


def average(windows: Sequence[Window]) -> Window:
    """One window of all of them: of each sensor the mean over those in which it works, by their length.

    The error of that mean: the spread between windows, over as many of them as are independent, and each one's own.
    """
    found: dict[tuple[str, str], list[tuple[float, PowerReading]]] = defaultdict(list)
    for window in windows:
        for reading in window.power:
            if _works(reading):
                found[reading.sensor, reading.covers].append((window.duration_s, reading))
    power = tuple(_mean(each) for each in found.values())
    return Window(math.fsum(window.duration_s for window in windows), {}, power)


def disagreements(window: Window) -> tuple[str, ...]:
    """Where sensors contradict each other by more than DISAGREEMENT, in words.

    Two of the same coverage that differ; or something that draws more than what contains it: the GPUs and processors
    together, the module, the board, and what comes from the wall. Several GPUs or processors are no contradiction.
    """
    works = [reading for reading in window.power if _works(reading)]
    return (*_twice(works), *_inside_out(works))


def flagged(window: Window | None) -> tuple[str, ...]:
    """Sensors that are there and were not used, or have gaps or failed at times, in words."""
    readings = window.power if window else ()
    return tuple(f"{reading.sensor}: {reading.reason}" for reading in readings if reading.covers and reading.reason)


def uncertainty(error: float | None) -> float | None:
    """Half the 95 % interval, as a share, from a relative standard error; None where it is unknown."""
    return Z95 * error if error else None


def _reading(found: Wattage | None) -> WindowWatts | None:
    return None if found is None else WindowWatts(found.busy_w, found.busy_error or None, found.provenance)


def _from_whole(idle: Window | None, busy: Window | None) -> Wattage | None:
    pairs = _pairs(idle, busy)
    for covers in WHOLE:
        whole = [pair for pair in pairs if pair[1].covers == covers][:1]
        if whole:
            return _total(whole, [covers])
    return None


def _from_parts(idle: Window | None, busy: Window | None) -> Wattage | None:
    parts = [pair for pair in _pairs(idle, busy) if pair[1].covers in PARTS]
    covered = [part for part in PARTS if any(reading.covers == part for _, reading in parts)]
    return _total(parts, covered) if parts else None


def _pairs(idle: Window | None, busy: Window | None) -> list[tuple[PowerReading, PowerReading]]:
    """Readings of the same sensor in both windows, where it gave watts in both. No device runs on 0 W: a sensor
    that says so does not work."""
    if idle is None or busy is None:
        return []
    before = {reading.sensor: reading for reading in idle.power if _works(reading)}
    pairs = [
        (before[reading.sensor], reading) for reading in busy.power if _works(reading) and reading.sensor in before
    ]
    return pairs if idle is busy else [pair for pair in pairs if not _stands_still(*pair)]


def _works(reading: PowerReading) -> bool:
    return reading.watts is not None and reading.watts > 0


def _stands_still(idle: PowerReading, busy: PowerReading) -> bool:
    """Whether a sensor said one and the same all the time, idle and under load."""
    return idle.watts == busy.watts and idle.stdev == busy.stdev == 0.0


def _total(pairs: Sequence[tuple[PowerReading, PowerReading]], covers: Sequence[str]) -> Wattage:
    (idle_w, idle_error), (busy_w, busy_error) = (_sum(readings) for readings in zip(*pairs, strict=True))
    provenance = Provenance.of_sensors((busy.source for _, busy in pairs), covers)
    return Wattage(idle_w, busy_w, idle_error, busy_error, provenance)


def _sum(readings: Sequence[PowerReading]) -> tuple[float, float]:
    """Watts of sensors that add up, above 0, and their relative standard error."""
    total_w = math.fsum(reading.watts or 0.0 for reading in readings)
    return total_w, math.hypot(*((reading.watts or 0.0) * _error(reading) for reading in readings)) / total_w


def _error(reading: PowerReading) -> float:
    """Relative standard error of a mean, 0 where unknown; of profiles that do not tell it, from the spread alone."""
    if reading.relative_error is not None or not reading.watts:
        return reading.relative_error or 0.0
    return (reading.stdev or 0.0) / math.sqrt(max(1, reading.count)) / reading.watts


def _mean(of: Sequence[tuple[float, PowerReading]]) -> PowerReading:
    """Of one sensor, over windows of so many seconds each."""
    seconds = math.fsum(duration_s for duration_s, _ in of)
    used_j = [duration_s * (reading.watts or 0.0) for duration_s, reading in of]
    mean_w = math.fsum(used_j) / seconds
    within = math.hypot(*(j * _error(reading) for j, (_, reading) in zip(used_j, of, strict=True))) / (mean_w * seconds)
    means_w = [reading.watts or 0.0 for _, reading in of]
    spread_w = stdev(means_w) if len(of) > 1 else 0.0
    between = spread_w / math.sqrt(effective_count(means_w)) / mean_w if spread_w else 0.0
    return of[0][1]._replace(
        watts=mean_w, stdev=None, count=sum(reading.count for _, reading in of), reason=None,
        gap_s=math.fsum(reading.gap_s for _, reading in of), relative_error=math.hypot(within, between) or None,
    )  # fmt: skip


def _twice(works: Sequence[PowerReading]) -> Iterator[str]:
    for covers in WHOLE:
        same = sorted((reading for reading in works if reading.covers == covers), key=lambda each: each.watts or 0.0)
        if len(same) > 1 and (same[-1].watts or 0.0) > (1 + DISAGREEMENT) * (same[0].watts or 0.0):
            yield f"sensors of the {covers} disagree: {_said(same[0])}, {_said(same[-1])}"


def _inside_out(works: Sequence[PowerReading]) -> Iterator[str]:
    """Innermost first: the parts together, then WHOLE from behind."""
    levels = [[each for each in works if each.covers in PARTS]]
    levels += [[each for each in works if each.covers == covers][:1] for covers in reversed(WHOLE)]
    for inner, outer in combinations(filter(None, levels), 2):
        if _sum(inner)[0] > (1 + DISAGREEMENT) * _sum(outer)[0]:
            yield f"{' + '.join(map(_said, inner))} exceeds {_said(outer[0])}, which contains it"


def _said(reading: PowerReading) -> str:
    return f"{reading.covers} ({reading.sensor}) {reading.watts:.3g} W"


def unavailable(window: Window) -> Provenance:
    """Of watts that nothing tells, with the reasons."""
    told = "; ".join(f"{reading.sensor}: {reading.reason}" for reading in window.power if reading.reason)
    why = f"no idle_watts and max_watts in the fleet file, and no sensor that works ({told or 'none was found'})"
    return Provenance(UNAVAILABLE, detail=why)
