"""What a power sensor offers, and what discovery returns."""

from typing import List, NamedTuple, Optional, Sequence, Tuple

from profilers.file_tree import Unavailable
from profilers.sensor_faults import REPEATS_S, WHOLE_WATTS_S


class Sensor:
    """Reads watts, or joules since it was made where ``counts_joules``. Only ``read`` must be written.

    covers: ``wall``, ``board`` and ``module`` are totals that hold everything else on the device; ``cpu`` (a
    package and its memory) and ``gpu`` do not overlap and may be added; a ``rail`` belongs to no sum.

    patience_s: how long it may repeat one value; see ``profilers.sensor_faults``.
    whole_watts_s: how long it may repeat one value without decimals.
    """

    name = ""
    covers = ""
    counts_joules = False
    emulated = False
    patience_s = REPEATS_S
    whole_watts_s = WHOLE_WATTS_S

    @property
    def source(self) -> str:
        """Provenance as in ``records.PowerReading``."""
        if self.emulated:
            return "emulated"
        return "counter" if self.counts_joules else "sensor"

    def read(self) -> float:
        """Watts now, or joules so far. Raises Unavailable."""
        raise NotImplementedError

    def history(self, begin_s: float, end_s: float) -> Optional[Tuple[List[float], List[float]]]:
        """(times, values) between two monotonic times, where readings come with times of their own; else None."""

    def close(self) -> None:
        """End what reading has started; the next ``read`` starts it again. Idempotent."""


class Found(NamedTuple):
    """Sensors that answer, and (name, reason) of those that could not be used."""

    sensors: Tuple[Sensor, ...]
    missing: Tuple[Tuple[str, str], ...]


NOTHING = Found((), ())

#: What the names of sensors begin with that the operator named; see ``profilers.sensors.external_meters``.
METER = "meter:"


def proven(sensors: Sequence[Sensor]) -> Found:
    """Read each sensor once and sort out those that fail."""
    good, missing = [], []
    for sensor in sensors:
        try:
            sensor.read()
        except Unavailable as error:
            missing.append((sensor.name, str(error)))
        else:
            good.append(sensor)
    for sensor in sensors:
        sensor.close()
    return Found(tuple(good), tuple(missing))
