"""A device tells these records of itself: its facts, its cores, its sensors."""

from typing import Any, Dict, NamedTuple, Optional, Tuple


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
    usable_cores: float
    online_cores: int
    memory_bytes: int
    available_bytes: int
    disk_free_bytes: int
    frameworks: Dict[str, Dict[str, Any]]
    gpus: Tuple[str, ...]
    iperf3: Optional[str]
    sensors: Tuple[str, ...]
    clock_s: float
    processor: Optional[str] = None
    precisions: Tuple[str, ...] = ()
    boot_id: Optional[str] = None


class SpunCores(NamedTuple):
    """Cores that spinning threads got (``profilers.spinning``).

    one: by a single thread; every: by ``threads`` threads, one for each usable core.
    period_s: from one pause in which a thread got nothing to the next, as a quota makes them; None
        where there were few, or where it was not measured.
    """

    one: float
    every: float
    threads: int
    period_s: Optional[float] = None


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
