"""This module defines the interface of a power sensor and the result of a discovery."""

from typing import Callable, List, NamedTuple, Optional, Sequence, Tuple

from profilers.file_tree import Unavailable
from profilers.sensor_faults import REPEAT_LIMIT_S, WHOLE_WATTS_LIMIT_S


class Sensor:
    """A source of watts, or of joules since it was created where ``counts_joules``.

    read: its value now; raises Unavailable.
    covers: ``wall``, ``board`` and ``module`` are totals of the device. ``cpu`` (a package and its
        memory) and ``gpu`` do not overlap and may be added. A ``rail`` belongs to no sum.
    repeat_limit_s, whole_watts_limit_s: see ``profilers.sensor_faults``.
    """

    name = ""
    covers = ""
    counts_joules = False
    repeat_limit_s = REPEAT_LIMIT_S
    whole_watts_limit_s = WHOLE_WATTS_LIMIT_S

    def __init__(self, name: str, covers: str, read: Callable[[], float], counts_joules: bool = False) -> None:
        self.name, self.covers, self.counts_joules = name, covers, counts_joules
        self._read = read

    @property
    def source(self) -> str:
        """Source as in ``records.PowerReading``."""
        return "counter" if self.counts_joules else "sensor"

    def read(self) -> float:
        """Watts now, or joules so far. Raises Unavailable."""
        return self._read()

    def history(self, begin_s: float, end_s: float) -> Optional[Tuple[List[float], List[float]]]:
        """(times, values) between two monotonic times; None without a log of its own times."""

    def close(self) -> None:
        """Stop background work; the next ``read`` starts it again. Idempotent."""


class DiscoveredSensors(NamedTuple):
    """The sensors that answer, and (name, reason) of the others."""

    sensors: Tuple[Sensor, ...]
    missing: Tuple[Tuple[str, str], ...]


NO_SENSORS = DiscoveredSensors((), ())


def unavailable(name: str, reason: object) -> DiscoveredSensors:
    """No sensor of this name, and the reason why."""
    return DiscoveredSensors((), ((name, str(reason)),))


#: Prefix of the names of meters that the operator configured (``external_meters``).
METER_PREFIX = "meter:"


def check_sensors(sensors: Sequence[Sensor], absent: Sequence[Tuple[str, str]] = ()) -> DiscoveredSensors:
    """Read each sensor once and add those that fail to the ``absent`` ones."""
    good, missing = [], list(absent)
    for sensor in sensors:
        try:
            sensor.read()
        except Unavailable as error:
            missing.append((sensor.name, str(error)))
        else:
            good.append(sensor)
    for sensor in sensors:
        sensor.close()
    return DiscoveredSensors(tuple(good), tuple(missing))
