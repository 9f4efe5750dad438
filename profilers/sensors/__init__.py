"""Power sensors, one small file a kind. To add one: write its ``discover(tree)`` and name it here."""

from typing import Optional

from profilers.file_tree import FileTree
from profilers.sensors import battery, external_meters, ina3221, nvidiasmi, nvml, rapl, tegrastats
from profilers.sensors.base import Found

SENSORS = {
    "ina3221": ina3221.discover,
    "tegrastats": tegrastats.discover,
    "rapl": rapl.discover,
    "nvml": nvml.discover,
    "nvidia-smi": nvidiasmi.discover,
    "battery": battery.discover,
    "meters": external_meters.discover,
}


def discover(root: Optional[str] = None) -> Found:
    """Every sensor that answers here, and the reasons of the others.

    root: a tree to read instead of the machine's own; None: PLANNER_SYSFS_ROOT, or "/".
    """
    tree = FileTree(root)
    found = [search(tree) for search in SENSORS.values()]
    return Found(
        tuple(sensor for part in found for sensor in part.sensors),
        tuple(reason for part in found for reason in part.missing),
    )
