"""This module reads a Jetson's power by tegrastats where sysfs states no total, as in a container.

tegrastats reads the same monitors as ``power_monitors``, so that the same rule gives the total.
"""

from profilers import tegra, tegrastats
from profilers.file_tree import FileTree, Unavailable
from profilers.sensors import power_monitors, rail_totals
from profilers.sensors.base import NO_SENSORS, DiscoveredSensors, Sensor, check_sensors, unavailable


class TegrastatsRails(Sensor):
    """The sum of one or more rails of the newest line."""

    def __init__(self, program: tegrastats.Tegrastats, total: rail_totals.Total) -> None:
        super().__init__("tegrastats:" + total.name, total.covers, self._sum)
        self._program = program
        self._labels = total.labels

    def _sum(self) -> float:
        rails = self._program.newest().rails
        missing = [label for label in self._labels if label not in rails]
        if missing:
            raise Unavailable("tegrastats no longer states " + ", ".join(missing))
        return sum(rails[label] for label in self._labels)

    def close(self) -> None:
        self._program.close()


def discover(tree: FileTree) -> DiscoveredSensors:
    """The totals of tegrastats; none on other machines, or where sysfs has them.

    Its rails of an unknown board are left out where sysfs has rails: they are the same.
    """
    if not tree.is_own or not tegra.is_tegra(tree):
        return NO_SENSORS
    known = power_monitors.discover(tree).sensors
    if any(sensor.covers != rail_totals.RAIL for sensor in known):
        return NO_SENSORS
    found = discover_totals(tegrastats.shared(tree.root))
    return found if not known or any(sensor.covers != rail_totals.RAIL for sensor in found.sensors) else NO_SENSORS


def discover_totals(program: tegrastats.Tegrastats) -> DiscoveredSensors:
    """The totals among the rails of a line, or the reason why there is none."""
    try:
        totals = rail_totals.totals(list(program.newest().rails))
    except Unavailable as error:
        return unavailable("tegrastats", error)
    finally:
        program.close()
    if not totals:
        return unavailable("tegrastats", "it states no rail of this board")
    return check_sensors([TegrastatsRails(program, total) for total in totals])
