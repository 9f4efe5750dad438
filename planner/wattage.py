"""Idle and busy watts of a device, and where they come from."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from planner.profilefile import DeviceProfile
from profilers.records import UNAVAILABLE, PowerReading, StepProfile, Window

#: What a device's total is read from, best first.
WHOLE = ("wall", "board", "module")
#: What is less than a device. Several GPUs or processors add up.
PARTS = ("gpu", "cpu")
#: What the source of watts that leave the rest of a device out ends with.
PARTIAL = " only"
#: What the source of an emulated device's watts contains.
EMULATED = "emulated"


class Wattage(NamedTuple):
    """Mean watts idle and while training, NaN where unknown, and their relative standard errors."""

    idle_w: float
    busy_w: float
    idle_error: float
    busy_error: float
    source: str


class Reading(NamedTuple):
    """Mean watts over a window and where they come from."""

    watts: float
    source: str


def wattage(device: DeviceProfile, step: StepProfile) -> Wattage:
    """From a sensor of the whole device in both windows, else the fleet file, else sensors of its parts."""
    unknown = Wattage(idle_watts(device), math.nan, 0.0, 0.0, UNAVAILABLE)
    found = (
        _from_whole(device.idle, step.window)
        or _from_nameplate(device)
        or _from_parts(device.idle, step.window)
        or unknown
    )
    if step.slowdown > 1:
        return found._replace(source=f"{EMULATED} (slowdown {step.slowdown:g}), {found.source}")
    return found


def idle_watts(device: DeviceProfile) -> float:
    """Idle watts of a device that takes no part, NaN where unknown."""
    declared = device.device.get("idle_watts")
    whole = _from_whole(device.idle, device.idle)
    if whole is None and declared is not None:
        return float(declared)
    found = whole or _from_parts(device.idle, device.idle)
    return math.nan if found is None else found.idle_w


def window_watts(window: Window) -> Reading | None:
    """What the sensors that cover most say of a window; None where none gave any."""
    return whole_watts(window) or parts_watts(window)


def whole_watts(window: Window) -> Reading | None:
    """What a sensor of the whole device says of a window."""
    return _reading(_from_whole(window, window))


def parts_watts(window: Window) -> Reading | None:
    """What sensors of its parts say of a window."""
    return _reading(_from_parts(window, window))


def partial(source: str) -> bool:
    """Whether watts with this source leave a part of the device out."""
    return source.endswith(PARTIAL)


def emulated(source: str) -> bool:
    """Whether watts with this source are an emulated device's."""
    return EMULATED in source


def _reading(found: Wattage | None) -> Reading | None:
    return None if found is None else Reading(found.busy_w, found.source)


def _from_whole(idle: Window | None, busy: Window | None) -> Wattage | None:
    pairs = _pairs(idle, busy)
    for covers in WHOLE:
        whole = [pair for pair in pairs if pair[1].covers == covers][:1]
        if whole:
            return _total(whole, covers)
    return None


def _from_parts(idle: Window | None, busy: Window | None) -> Wattage | None:
    parts = [pair for pair in _pairs(idle, busy) if pair[1].covers in PARTS]
    covered = [part for part in PARTS if any(reading.covers == part for _, reading in parts)]
    return _total(parts, " + ".join(covered) + PARTIAL) if parts else None


def _pairs(idle: Window | None, busy: Window | None) -> list[tuple[PowerReading, PowerReading]]:
    """Readings of the same sensor in both windows, where it gave watts in both. No device runs on 0 W: a sensor
    that says so does not work."""
    if idle is None or busy is None:
        return []
    before = {reading.sensor: reading for reading in idle.power if _works(reading)}
    return [
        (before[reading.sensor], reading) for reading in busy.power if _works(reading) and reading.sensor in before
    ]


def _works(reading: PowerReading) -> bool:
    return reading.watts is not None and reading.watts > 0


def _total(pairs: Sequence[tuple[PowerReading, PowerReading]], covers: str) -> Wattage:
    (idle_w, idle_error), (busy_w, busy_error) = (_sum(readings) for readings in zip(*pairs, strict=True))
    kinds = sorted({busy.source for _, busy in pairs})
    return Wattage(idle_w, busy_w, idle_error, busy_error, f"{' and '.join(kinds)}: {covers}")


def _sum(readings: Sequence[PowerReading]) -> tuple[float, float]:
    """Watts of sensors that add up, above 0, and their relative standard error."""
    total_w = math.fsum(reading.watts or 0.0 for reading in readings)
    variance = math.fsum((reading.stdev or 0.0) ** 2 / max(1, reading.count) for reading in readings)
    return total_w, math.sqrt(variance) / total_w


def _from_nameplate(device: DeviceProfile) -> Wattage | None:
    idle_w, max_w = device.device.get("idle_watts"), device.device.get("max_watts")
    if idle_w is None or max_w is None:
        return None
    return Wattage(float(idle_w), float(max_w), 0.0, 0.0, "fleet file: idle and maximum")
