"""A device tells these records of itself: its facts and its sensors."""

from typing import Any, Dict, NamedTuple, Optional, Tuple

from profilers.records.readings import check_sensor


class HostMemory(NamedTuple):
    """Bytes of main memory, and how many of them a new process can have."""

    total_bytes: int
    available_bytes: int

    def check(self) -> None:
        """Raises ValueError where more is available than there is."""
        if self.available_bytes > self.total_bytes:
            raise ValueError("available_bytes: %d are more than all, %d" % (self.available_bytes, self.total_bytes))


class Processor(NamedTuple):
    """A processor. usable_cores: of its cores, those that this process may use, parts included."""

    name: Optional[str]
    online_cores: int
    usable_cores: float

    def check(self) -> None:
        """Raises ValueError where more cores are usable than are online, parts aside."""
        if self.usable_cores >= self.online_cores + 1:
            raise ValueError("usable_cores: %g of %d online" % (self.usable_cores, self.online_cores))


class Facts(NamedTuple):
    """The facts of a device. ``frameworks``: {version, accelerator, device} or {error} by name.

    precisions: the mixed ones for which it has instructions, see ``profilers.mixed_precision``.
    boot_id: of its kernel, which devices on one machine share; None where it is unknown.
    """

    hostname: str
    board: Optional[str]
    system: str
    machine: str
    python: str
    processor: Processor
    memory: HostMemory
    disk_free_bytes: int
    frameworks: Dict[str, Dict[str, Any]]
    gpus: Tuple[str, ...]
    iperf3: Optional[str]
    sensors: Tuple[str, ...]
    precisions: Tuple[str, ...] = ()
    boot_id: Optional[str] = None


class SensorFacts(NamedTuple):
    """Update period and noise of a power sensor; source and covers as in ``PowerReading``.

    period_s, noise_w: seconds between new values, standard deviation of one; None for few changes.
    reason: why the sensor cannot be used; None if it can.
    """

    name: str
    source: str
    covers: str
    period_s: Optional[float]
    noise_w: Optional[float]
    reason: Optional[str] = None

    def check(self) -> None:
        """Raises ValueError for an unknown source or coverage."""
        check_sensor(self.name, self.source, self.covers)
