"""Idle and busy watts of a device: by a sensor of it all, the fleet file, sensors of its parts."""

import math

from planner.profile.file import DeviceProfile
from planner.profile.power_readings import Wattage, unavailable, watts_of_parts, watts_of_whole
from planner.provenance import NAMEPLATE, Provenance
from profilers.records.steps import StepProfile


def wattage(device: DeviceProfile, step: StepProfile) -> Wattage:
    """Watts by a sensor of the whole device, else the fleet file, else sensors of its parts."""
    idle_w, max_w = device.device.get("idle_watts"), device.device.get("max_watts")
    found = watts_of_whole(device.idle, step.window)
    if found is None and idle_w is not None and max_w is not None:
        source = Provenance(NAMEPLATE, ("board",), detail="fleet file")
        found = Wattage(float(idle_w), float(max_w), 0.0, 0.0, source)
    found = found or watts_of_parts(device.idle, step.window)
    found = found or Wattage(idle_watts(device), math.nan, 0.0, 0.0, unavailable(step.window, device.idle))
    if step.setup.slowdown == 1:
        return found
    emulated = found.provenance._replace(emulated=True).noting(f"slowdown {step.setup.slowdown:g}")
    return found._replace(provenance=emulated)


def idle_watts(device: DeviceProfile) -> float:
    """Idle watts of a device that takes no part, NaN where unknown."""
    declared = device.device.get("idle_watts")
    found = watts_of_whole(device.idle, device.idle)
    if found is None and declared is not None:
        return float(declared)
    found = found or watts_of_parts(device.idle, device.idle)
    return math.nan if found is None else found.idle_w
