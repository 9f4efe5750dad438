"""The records that travel from a device to the operator: named tuples that become JSON.

Every quantity carries its unit in its name or beside it. ``encode`` turns a record into plain
JSON values; ``planner.decode`` reads them back and names what does not fit.
"""

from typing import Any, Dict, NamedTuple, Optional, Tuple

SCHEMA = 1

UNAVAILABLE = "unavailable"
#: Watts that a power model estimates from counters, and those of one that learned from emulated watts.
MODEL, EMULATED_MODEL = "model", "emulated model"


class Samples(NamedTuple):
    """Raw values in the order they were measured; what ran before them apart."""

    unit: str
    values: Tuple[float, ...]
    warmup: Tuple[float, ...] = ()


class Reading(NamedTuple):
    """One counter over a window: its mean, or the reason why there is none."""

    unit: str
    mean: Optional[float]
    stdev: Optional[float]
    count: int
    reason: Optional[str] = None


class PowerReading(NamedTuple):
    """Watts of one sensor over a window, with where they come from and what they cover.

    source: ``counter`` (the sensor counts joules), ``sensor`` (watts, sampled), ``emulated``, ``model``, ``emulated
    model`` or ``unavailable``; covers: ``wall``, ``board``, ``module``, ``gpu``, ``cpu`` or ``rail``.

    gap_s: seconds of the window in which nothing was sampled; period_s: median seconds between two samples that
    say something new, None where fewer than two did; relative_error: standard error of the mean as a share
    of it, from the spread between samples, how many of them are independent, and gaps; None where all are equal.
    """

    sensor: str
    source: str
    covers: str
    watts: Optional[float]
    stdev: Optional[float]
    count: int
    reason: Optional[str] = None
    gap_s: float = 0.0
    period_s: Optional[float] = None
    relative_error: Optional[float] = None


class Window(NamedTuple):
    """What counters and sensors said over a stretch of time on the device's monotonic clock.

    cpu_share: share of one core that sampling took; seconds: means over consecutive stretches of equal length, about a
    second or a 60th of a longer window, by counter, and of watts by "power:" and the sensor's name; None where
    a stretch has no sample. Of what is usable only, and all equally long.
    """

    duration_s: float
    counters: Dict[str, Reading]
    power: Tuple[PowerReading, ...]
    cpu_share: Optional[float] = None
    seconds: Dict[str, Tuple[Optional[float], ...]] = {}


class Facts(NamedTuple):
    """What a device is. ``frameworks`` maps a name to {version, accelerator, device} or {error}."""

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


class SensorFacts(NamedTuple):
    """A power sensor: source and covers as in ``PowerReading``, how often it has a new value, and its noise.

    period_s: seconds between new values; noise_w: standard deviation of a reading; both None where too little was
    seen to tell. reason: why it is of no use; None if it is.
    """

    name: str
    source: str
    covers: str
    period_s: Optional[float]
    noise_w: Optional[float]
    reason: Optional[str] = None


class CodecCost(NamedTuple):
    """What choosing what of a gradient one message holds takes this device, and taking in such a message."""

    send_s: Samples
    add_s: Samples


class Repeat(NamedTuple):
    """A later look at a model that was timed on a device before: phases and processor time as in ``StepProfile``."""

    gradient_s: Samples
    copy_s: Samples
    update_s: Samples
    cpu_s_per_step: float


class StepProfile(NamedTuple):
    """Pre-training of one model on one device.

    A step of a single device is gradient_s + update_s; a step of a worker in a cluster is
    gradient_s + copy_s and the exchange with the server. ``service_s`` is what one update costs
    this device's CPU when it hosts the parameter server. ``half_batch_s`` holds the gradient
    times at half the batch size, from which other batch sizes are predicted. ``steps_planned``:
    of the training for which the time for this was allowed, as the operator's side knows it. ``layers``: elements of
    each trained variable, in the order in which they lie in the flat buffer. ``senders``: what they cost, by kind.
    ``visits``: seconds of a step in each visit, the middle one of it, in the order in which they were made.
    """

    model: str
    fingerprint: str
    framework: str
    framework_version: str
    accelerator: str
    threads: int
    slowdown: float
    batch: int
    protocol: str
    build_s: float
    gradient_s: Samples
    copy_s: Samples
    update_s: Samples
    half_batch_s: Samples
    service_s: Samples
    steady: bool
    precise: bool
    cpu_s_per_step: float
    parameters: int
    parameter_bytes: int
    gradient_bytes: int
    state_bytes: int
    window: Window
    steps_planned: Optional[int] = None
    layers: Tuple[int, ...] = ()
    senders: Dict[str, CodecCost] = {}
    visits: Tuple[float, ...] = ()


class CurvePoint(NamedTuple):
    """One-way times of one message size through the encrypted data plane, and processor seconds at both ends."""

    message_bytes: int
    seconds: Samples
    send_cpu_s: Optional[float] = None
    receive_cpu_s: Optional[float] = None


class LinkProfile(NamedTuple):
    """A directed link. ``tool`` is ``iperf3`` or ``python`` (the labelled fallback).

    bytes_per_s: goodput per interval; latency_s: half round trips of a small message;
    send_cpu_s and receive_cpu_s: processor seconds per byte of the largest message; send_taken_s and
    receive_taken_s: those that a computation beside it lacks, None from a device to itself or where other work hid it;
    measured_s: when, in seconds since the epoch by the operator's clock; visits: how many, minutes apart, all but its
    goodput is from, 0 where it is from before they were counted.
    """

    source: str
    target: str
    tool: str
    bytes_per_s: Samples
    latency_s: Samples
    curve: Tuple[CurvePoint, ...]
    send_cpu_s: float
    receive_cpu_s: float
    measured_s: float = 0.0
    send_taken_s: Optional[float] = None
    receive_taken_s: Optional[float] = None
    visits: int = 0


class IncastProfile(NamedTuple):
    """All peers at once into (``in``) or out of (``out``) one host: bytes/s by peer."""

    host: str
    direction: str
    tool: str
    bytes_per_s: Dict[str, float]
    measured_s: float = 0.0


def encode(value: Any) -> Any:
    """Plain JSON values of a record, recursively; one that has a method ``as_text`` becomes that text."""
    if hasattr(value, "as_text"):
        return value.as_text()
    if hasattr(value, "_asdict"):
        return {key: encode(item) for key, item in value._asdict().items()}
    if isinstance(value, dict):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    return value
