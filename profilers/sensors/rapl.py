"""This module reads the energy counters of Intel and AMD in /sys/class/powercap/intel-rapl:*.

Only root may read them on most systems. A package and its memory are one sensor (``cpu``). Core and
uncore are parts of the package and are left out, like intel-rapl-mmio, a second path to the same
counter. psys is the board as far as the firmware includes it: it may leave out the supply of a
discrete GPU, so that beside one it belongs to no sum.
"""

import functools
from typing import List, Sequence, Tuple

from profilers.file_tree import FileTree, Unavailable
from profilers.sensors import nvml
from profilers.sensors.base import DiscoveredSensors, Sensor, check_sensors

ZONES = "sys/class/powercap/intel-rapl:[0-9]*"


class Zone:
    """One energy counter, unwrapped: joules since it was created.

    A decrease by more than half of its range is a wrap; a smaller one is a fault and passed on.
    """

    def __init__(self, tree: FileTree, folder: str) -> None:
        self._tree = tree
        self._folder = folder
        self._range_uj = tree.number(folder + "/max_energy_range_uj")
        self._last_uj = tree.number(folder + "/energy_uj")
        self._sum_uj = 0

    def joules(self) -> float:
        now_uj = self._tree.number(self._folder + "/energy_uj")
        step_uj = now_uj - self._last_uj
        self._sum_uj += step_uj if step_uj >= -self._range_uj / 2.0 else step_uj + self._range_uj
        self._last_uj = now_uj
        return self._sum_uj / 1e6


def discover(tree: FileTree) -> DiscoveredSensors:
    """A sensor for each package and one for psys."""
    sensors: List[Sensor] = []
    missing: List[Tuple[str, str]] = []
    for folder in tree.glob(ZONES):
        if folder.count(":") > 1:
            continue  # a zone inside another
        try:
            zone = tree.text(folder + "/name")
            folders = [folder] + [part for part in tree.glob(folder + ":*") if tree.text(part + "/name") == "dram"]
            zones = [Zone(tree, part) for part in folders]
        except Unavailable as error:
            missing.append(("rapl:" + folder.rsplit(":", 1)[1], str(error)))
            continue
        name, covers = "rapl:" + zone + "+dram" * (len(zones) > 1), covered(zone, tree)
        read = functools.partial(_total_joules, zones)
        sensors.append(Sensor(name, covers, read, counts_joules=True))
    return check_sensors(sensors, missing)


def _total_joules(zones: Sequence[Zone]) -> float:
    return sum(zone.joules() for zone in zones)


def covered(zone: str, tree: FileTree) -> str:
    """Coverage of a zone: ``cpu``; psys is the ``board``, or a ``rail`` beside a GPU of NVML's."""
    if zone != "psys":
        return "cpu"
    try:
        nvml.installed(tree)
    except Unavailable:
        return "board"
    return "rail"
