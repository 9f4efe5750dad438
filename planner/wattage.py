"""Idle and busy watts of a device, and where they come from."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from planner.profilefile import DeviceProfile
from profilers.records import UNAVAILABLE, PowerReading, StepProfile, Window

#: What a device's total is read from, best first. Several GPUs or processors add up.
WHOLE = ("wall", "board", "module")
PARTS = ("gpu", "cpu")


class Wattage(NamedTuple):
    """Mean watts idle and while training, NaN where unknown; the busy mean's relative standard error."""

    idle_w: float
    busy_w: float
    error: float
    source: str


def wattage(device: DeviceProfile, step: StepProfile) -> Wattage:
    """From the sensor that covers most in both windows, else the fleet file's, else unavailable."""
    unknown = Wattage(idle_watts(device), math.nan, 0.0, UNAVAILABLE)
    found = _from_sensors(device.idle, step.window) or _from_nameplate(device) or unknown
    slowdown = step.slowdown
    return (
        found._replace(source=f"emulated (slowdown {slowdown:g}), {found.source}") if slowdown > 1 else found
    )


def idle_watts(device: DeviceProfile) -> float:
    """Idle watts of a device that takes no part, NaN where unknown."""
    found = _from_sensors(device.idle, device.idle) if device.idle is not None else None
    declared = device.device.get("idle_watts")
    if found is not None:
        return found.idle_w
    return math.nan if declared is None else float(declared)


def window_watts(window: Window) -> tuple[float, str] | None:
    """Mean watts over a window and where they come from; None where no sensor gave any."""
    found = _from_sensors(window, window)
    return None if found is None else (found.busy_w, found.source)


def _from_sensors(idle: Window | None, busy: Window) -> Wattage | None:
    if idle is None:
        return None
    pairs = _pairs(idle.power, busy.power)
    for covers in WHOLE:
        whole = [pair for pair in pairs if pair[1].covers == covers][:1]
        if whole:
            return _total(whole, covers)
    parts = [pair for pair in pairs if pair[1].covers in PARTS]
    if not parts:
        return None
    covered = [part for part in PARTS if any(reading.covers == part for _, reading in parts)]
    return _total(parts, " + ".join(covered) if len(covered) > 1 else f"{covered[0]} only")


def _pairs(
    idle: Sequence[PowerReading], busy: Sequence[PowerReading]
) -> list[tuple[PowerReading, PowerReading]]:
    """Readings of the same sensor in both windows, where it gave watts in both."""
    before = {reading.sensor: reading for reading in idle if reading.watts is not None}
    return [
        (before[reading.sensor], reading)
        for reading in busy
        if reading.watts is not None and reading.sensor in before
    ]


def _total(pairs: Sequence[tuple[PowerReading, PowerReading]], covers: str) -> Wattage:
    idle_w = math.fsum(idle.watts or 0.0 for idle, _ in pairs)
    busy_w = math.fsum(busy.watts or 0.0 for _, busy in pairs)
    variance = math.fsum((busy.stdev or 0.0) ** 2 / max(1, busy.count) for _, busy in pairs)
    kinds = sorted({busy.source for _, busy in pairs})
    error = math.sqrt(variance) / busy_w if busy_w > 0 else 0.0
    return Wattage(idle_w, busy_w, error, f"{' and '.join(kinds)}: {covers}")


def _from_nameplate(device: DeviceProfile) -> Wattage | None:
    idle_w, max_w = device.device.get("idle_watts"), device.device.get("max_watts")
    if idle_w is None or max_w is None:
        return None
    return Wattage(float(idle_w), float(max_w), 0.0, "fleet file: idle and maximum")
