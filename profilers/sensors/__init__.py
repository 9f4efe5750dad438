"""Each module of this package reads one kind of power sensor.

To add a kind, write its ``discover(tree)`` and name its module in KINDS.
"""

from typing import List, Optional

from profilers.file_tree import FileTree
from profilers.sensors import (
    battery,
    external_meters,
    nvidia_smi,
    nvml,
    power_monitors,
    powermetrics,
    rapl,
    tegrastats,
)
from profilers.sensors.base import DiscoveredSensors

KINDS = (power_monitors, tegrastats, rapl, powermetrics, nvml, nvidia_smi, battery, external_meters)


def discover(root: Optional[str] = None) -> DiscoveredSensors:
    """All sensors that answer on this device, and the reasons of the others.

    root: root of the file tree; None stands for PLANNER_SYSFS_ROOT, or "/".
    """
    tree = FileTree(root)
    found: List[DiscoveredSensors] = [kind.discover(tree) for kind in KINDS]
    return DiscoveredSensors(
        tuple(sensor for part in found for sensor in part.sensors),
        tuple(reason for part in found for reason in part.missing),
    )
