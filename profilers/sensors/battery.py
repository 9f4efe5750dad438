"""This module reads the power of a laptop from its batteries while they discharge.

It is that of the whole machine, display included: /sys/class/power_supply/*/power_now in uW, or
current_now in uA, which some drivers give as negative, times voltage_now in uV. Most firmware
updates them seldom. While a supply of type Mains is online, the power is not the machine's.
"""

from typing import Sequence

from profilers.file_tree import FileTree, Unavailable
from profilers.sensors.base import DiscoveredSensors, Sensor, check_sensors

ON_MAINS = "it runs on mains power"


class Batteries(Sensor):
    """Watts of all discharging batteries while none of the ``mains`` supplies is online."""

    name = "battery"
    covers = "board"
    repeat_limit_s = 60.0

    def __init__(self, tree: FileTree, folders: Sequence[str], mains: Sequence[str]) -> None:
        self.emulated = tree.emulated
        self._tree = tree
        self._folders = tuple(folders)
        self._mains = tuple(mains)

    def read(self) -> float:
        discharging = [folder for folder in self._folders if self._tree.text(folder + "/status") == "Discharging"]
        if not discharging or any(self._tree.first_text(folder + "/online") == "1" for folder in self._mains):
            raise Unavailable(ON_MAINS)
        return sum(watts(self._tree, folder) for folder in discharging)


def watts(tree: FileTree, folder: str) -> float:
    """Watts that a battery delivers. Raises Unavailable."""
    try:
        return abs(tree.number(folder + "/power_now")) / 1e6
    except Unavailable:
        return abs(tree.number(folder + "/current_now")) * tree.number(folder + "/voltage_now") / 1e12


def discover(tree: FileTree) -> DiscoveredSensors:
    """One sensor for all batteries of the machine; none where it has no battery."""
    supplies = tree.glob("sys/class/power_supply/*")
    folders = [folder for folder in supplies if _feeds_machine(tree, folder)]
    mains = [folder for folder in supplies if tree.first_text(folder + "/type") == "Mains"]
    return check_sensors([Batteries(tree, folders, mains)] if folders else [])


def _feeds_machine(tree: FileTree, folder: str) -> bool:
    """Whether this is a battery of the machine, not of a mouse or a pen."""
    return tree.first_text(folder + "/type") == "Battery" and tree.first_text(folder + "/scope") != "Device"
