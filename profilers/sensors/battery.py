"""This module reads the power of a laptop from its batteries while they alone feed it.

It is that of the whole machine, display included: /sys/class/power_supply/*/power_now in uW, or
current_now in uA, which some drivers give as negative, times voltage_now in uV. Most firmware
updates them seldom. Beside any other supply that is online, such as Mains or USB, and while one
battery charges, a battery's power is not the machine's: weak chargers leave a part to it.
"""

import functools
from typing import Sequence

from profilers.file_tree import FileTree, Unavailable
from profilers.sensors.base import NO_SENSORS, DiscoveredSensors, Sensor, check_sensors

DISCHARGING = "Discharging"
#: What a battery says that neither feeds the machine nor is fed.
AT_REST = ("Full", "Not charging", "Unknown")
#: No machine runs on less than the first, and no laptop on more than the second; firmware that does
#: not know states -1 or all bits.
LEAST_W, MOST_W = 0.1, 1000.0


class Batteries(Sensor):
    """All batteries of the machine."""

    repeat_limit_s = 60.0


def total_watts(tree: FileTree, batteries: Sequence[str], others: Sequence[str]) -> float:
    """Watts of all discharging batteries while nothing else feeds the machine.

    others: the folders of its supplies that are no batteries. Raises Unavailable.
    """
    for folder in others:
        if _is_online(tree, folder):
            raise Unavailable("the machine also draws from its charger (%s)" % _name(folder))
    status = {folder: tree.text(folder + "/status") for folder in batteries}
    for folder in batteries:
        if status[folder] != DISCHARGING and status[folder] not in AT_REST:
            raise Unavailable("%s says %r, so that something else feeds the machine" % (_name(folder), status[folder]))
    feeding = [folder for folder in batteries if status[folder] == DISCHARGING]
    if not feeding:
        raise Unavailable("no battery discharges: the machine runs on mains power")
    return sum(_watts(tree, folder) for folder in feeding)


def _is_online(tree: FileTree, folder: str) -> bool:
    """USB supplies state 1 for a fixed voltage and 2 for a programmable one."""
    return tree.first_text(folder + "/online") not in ("", "0")


def _watts(tree: FileTree, folder: str) -> float:
    try:
        watts = abs(tree.number(folder + "/power_now")) / 1e6
    except Unavailable:
        watts = abs(tree.number(folder + "/current_now")) * tree.number(folder + "/voltage_now") / 1e12
    if not LEAST_W <= watts <= MOST_W:
        raise Unavailable("%s states %g W while it discharges" % (_name(folder), watts))
    return watts


def _name(folder: str) -> str:
    return folder.rsplit("/", 1)[-1]


def discover(tree: FileTree) -> DiscoveredSensors:
    """One sensor for all batteries of the machine; none where it has no battery."""
    supplies = [
        folder
        for folder in tree.glob("sys/class/power_supply/*")
        if tree.first_text(folder + "/scope") != "Device"  # of a mouse or a pen
    ]
    batteries = [folder for folder in supplies if tree.first_text(folder + "/type") == "Battery"]
    if not batteries:
        return NO_SENSORS
    others = [folder for folder in supplies if folder not in batteries]
    return check_sensors([Batteries("battery", "board", functools.partial(total_watts, tree, batteries, others))])
