"""What a power sensor offers, and what discovery returns."""

import abc
from typing import NamedTuple, Sequence, Tuple

from profilers.tree import Unavailable


class Sensor(abc.ABC):
    """Reads watts, or joules since it was made where ``counts_joules``.

    covers: ``board`` and ``module`` are totals that hold everything else on the device; ``cpu`` (a
    package and its memory) and ``gpu`` do not overlap and may be added; a ``rail`` belongs to no sum.
    """

    name = ""
    covers = ""
    counts_joules = False
    emulated = False

    @property
    def source(self):
        # type: () -> str
        """Provenance as in ``records.PowerReading``."""
        if self.emulated:
            return "emulated"
        return "counter" if self.counts_joules else "sensor"

    @abc.abstractmethod
    def read(self):
        # type: () -> float
        """Watts now, or joules so far. Raises Unavailable."""


class Found(NamedTuple):
    """Sensors that answer, and (name, reason) of those that could not be used."""

    sensors: Tuple[Sensor, ...]
    missing: Tuple[Tuple[str, str], ...]


def proven(sensors):
    # type: (Sequence[Sensor]) -> Found
    """Read each sensor once and sort out those that fail."""
    good, missing = [], []
    for sensor in sensors:
        try:
            sensor.read()
        except Unavailable as error:
            missing.append((sensor.name, str(error)))
        else:
            good.append(sensor)
    return Found(tuple(good), tuple(missing))
