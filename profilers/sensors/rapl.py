"""This module reads the energy counters of Intel and AMD in /sys/class/powercap/intel-rapl:*.

Only root may read them on most systems. A package and its memory are one sensor (``cpu``). Core and
uncore are parts of the package and are left out, like intel-rapl-mmio, a second path to the same
counter. Each die of AMD repeats the counter of the whole package; those of Intel count their own.
psys is the board as far as the firmware includes it: it may leave out the supply of a
discrete GPU, so that beside one it belongs to no sum.
"""

import functools
import re
import time
from typing import Callable, List, Sequence, Tuple

from profilers.file_tree import FileTree, Unavailable
from profilers.sensor_faults import SHORTEST_S, most_watts
from profilers.sensors import nvml
from profilers.sensors.base import DiscoveredSensors, Sensor, check_sensors

ZONES = "sys/class/powercap/intel-rapl:[0-9]*"
DISPLAYS = "sys/bus/pci/devices/*/class"
DISPLAY_CLASS = "0x03"
#: The bus of a processor's own devices, its graphics included.
OWN_BUS = "0000:00:"
#: CLOCK_BOOTTIME, named by the time module from Python 3.7 on, goes on in a suspended machine.
_BOOTTIME = 7
#: Two clocks are read one after the other; a machine is suspended for longer than this.
SUSPENDED_S = 0.5
_FURTHER_DIE = re.compile(r"(package-\d+)-die-(?!0$)\d+")
PROCESSORS = "proc/cpuinfo"


class Zone:
    """One energy counter, unwrapped: joules since it was created.

    A decrease is a wrap if the joules up to the end of its range and from zero on could have been
    used since the last read. Else the counter has begun anew, as it may while the machine is
    suspended; or it has counted on meanwhile, while the monotonic clock stood still. Both show as a
    decrease, which is a fault.
    """

    def __init__(
        self,
        tree: FileTree,
        folder: str,
        clock: Callable[[], float] = time.monotonic,
        suspended: Callable[[], float] = lambda: time.clock_gettime(_BOOTTIME) - time.monotonic(),
    ) -> None:
        self._tree = tree
        self._folder = folder
        self._clock, self._suspended = clock, suspended
        self._range_uj = tree.number(folder + "/max_energy_range_uj")
        self._last_uj = tree.number(folder + "/energy_uj")
        self._last_s, self._suspended_s = clock(), suspended()
        self._sum_uj = 0

    def joules(self) -> float:
        now_uj, now_s, suspended_s = self._tree.number(self._folder + "/energy_uj"), self._clock(), self._suspended()
        step_uj = now_uj - self._last_uj
        most_uj = 1e6 * most_watts("cpu") * max(SHORTEST_S, now_s - self._last_s)
        if step_uj < 0 and 0 <= step_uj + self._range_uj <= most_uj:
            step_uj += self._range_uj
        if step_uj > most_uj or suspended_s - self._suspended_s > SUSPENDED_S:
            step_uj = -abs(step_uj)
        self._sum_uj += step_uj
        self._last_uj, self._last_s, self._suspended_s = now_uj, now_s, suspended_s
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
            _require_own_counter(zone, tree)
            folders = [folder] + [part for part in tree.glob(folder + ":*") if tree.text(part + "/name") == "dram"]
            zones = [Zone(tree, part) for part in folders]
        except Unavailable as error:
            missing.append(("rapl:" + folder.rsplit(":", 1)[1], str(error)))
            continue
        name, covers = "rapl:" + zone + "+dram" * (len(zones) > 1), covered(zone, tree)
        read = functools.partial(_total_joules, zones)
        sensors.append(Sensor(name, covers, read, counts_joules=True))
    return check_sensors(sensors, missing)


def _require_own_counter(zone: str, tree: FileTree) -> None:
    """Raises Unavailable for a zone that repeats the counter of another one."""
    further = _FURTHER_DIE.fullmatch(zone)
    if further and "GenuineIntel" not in tree.first_text(PROCESSORS):
        raise Unavailable("%s repeats the counter of all of %s" % (zone, further.group(1)))


def _total_joules(zones: Sequence[Zone]) -> float:
    return sum(zone.joules() for zone in zones)


def covered(zone: str, tree: FileTree) -> str:
    """Coverage of a zone: ``cpu``; psys is the ``board``, or a ``rail`` beside a discrete GPU."""
    if zone.startswith("package"):
        return "cpu"
    return "board" if zone == "psys" and not _has_discrete_gpu(tree) else "rail"


def _has_discrete_gpu(tree: FileTree) -> bool:
    """Whether NVML sees a GPU, or a display controller is on another bus than the processor's."""
    displays = [name for name in tree.glob(DISPLAYS) if tree.first_text(name).startswith(DISPLAY_CLASS)]
    if any(not name.split("/")[-2].startswith(OWN_BUS) for name in displays):
        return True
    try:
        return bool(nvml.installed(tree))
    except Unavailable:
        return False
