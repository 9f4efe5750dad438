"""This module reads the power of a laptop from its batteries while they discharge.

It is that of the whole machine, display included: /sys/class/power_supply/*/power_now in uW, or
current_now in uA, which some drivers give as negative, times voltage_now in uV. Most firmware
updates them seldom. While a supply of type Mains is online, the power is not the machine's.
"""

import functools
from typing import Sequence

from profilers.file_tree import FileTree, Unavailable
from profilers.sensors.base import NO_SENSORS, DiscoveredSensors, Sensor, check_sensors

ON_MAINS = "it runs on mains power"


class Batteries(Sensor):
    """All batteries of the machine."""

    repeat_limit_s = 60.0


def total_watts(tree: FileTree, folders: Sequence[str], mains: Sequence[str]) -> float:
    """Watts of all discharging batteries while none of the ``mains`` supplies is online."""
    discharging = [folder for folder in folders if tree.text(folder + "/status") == "Discharging"]
    if not discharging or any(tree.first_text(folder + "/online") == "1" for folder in mains):
        raise Unavailable(ON_MAINS)
    return sum(_watts(tree, folder) for folder in discharging)


def _watts(tree: FileTree, folder: str) -> float:
    try:
        return abs(tree.number(folder + "/power_now")) / 1e6
    except Unavailable:
        return abs(tree.number(folder + "/current_now")) * tree.number(folder + "/voltage_now") / 1e12


def discover(tree: FileTree) -> DiscoveredSensors:
    """One sensor for all batteries of the machine; none where it has no battery."""
    supplies = tree.glob("sys/class/power_supply/*")
    folders = [folder for folder in supplies if _feeds_machine(tree, folder)]
    mains = [folder for folder in supplies if tree.first_text(folder + "/type") == "Mains"]
    if not folders:
        return NO_SENSORS
    read = functools.partial(total_watts, tree, folders, mains)
    return check_sensors([Batteries("battery", "board", read)])


def _feeds_machine(tree: FileTree, folder: str) -> bool:
    """Whether this is a battery of the machine, not of a mouse or a pen."""
    return tree.first_text(folder + "/type") == "Battery" and tree.first_text(folder + "/scope") != "Device"
