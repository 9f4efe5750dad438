"""Each module of this package reads one kind of power sensor.

To add a kind, write its ``discover(tree)`` and name it in SENSORS.
"""

from typing import Optional

from profilers.file_tree import FileTree
from profilers.sensors import battery, external_meters, ina3221, nvidia_smi, nvml, rapl, tegrastats
from profilers.sensors.base import DiscoveredSensors

SENSORS = {
    "ina3221": ina3221.discover,
    "tegrastats": tegrastats.discover,
    "rapl": rapl.discover,
    "nvml": nvml.discover,
    "nvidia-smi": nvidia_smi.discover,
    "battery": battery.discover,
    "meters": external_meters.discover,
}


def discover(root: Optional[str] = None) -> DiscoveredSensors:
    """All sensors that answer on this device, and the reasons of the others.

    root: root of the file tree; None stands for PLANNER_SYSFS_ROOT, or "/".
    """
    tree = FileTree(root)
    found = [search(tree) for search in SENSORS.values()]
    return DiscoveredSensors(
        tuple(sensor for part in found for sensor in part.sensors),
        tuple(reason for part in found for reason in part.missing),
    )
