"""A device sends these records to the operator: named tuples that become JSON.

Every quantity carries its unit in its name or beside it. ``encode`` turns a record into plain
JSON values; ``planner.json_records`` reads and checks them.
"""

from typing import Any, Dict, NamedTuple, Optional, Tuple

SCHEMA = 1

UNAVAILABLE = "unavailable"
#: Sources of watts from a power model, fitted to measured or to emulated watts.
MODEL, EMULATED_MODEL = "model", "emulated model"


class Samples(NamedTuple):
    """Raw values in the order of measurement; those of the warm-up are separate."""

    unit: str
    values: Tuple[float, ...]
    warmup: Tuple[float, ...] = ()


class Reading(NamedTuple):
    """Mean of one counter over a window, or the reason why there is none."""

    unit: str
    mean: Optional[float]
    stdev: Optional[float]
    count: int  # type: ignore[assignment]  # a key of the profile; it hides tuple.count
    reason: Optional[str] = None


class PowerReading(NamedTuple):
    """Watts of one sensor over a window, with their source and coverage.

    source: ``counter`` of joules, ``sensor`` of watts, ``emulated``, ``model``, ``emulated model``
    or ``unavailable``.
    covers: ``wall``, ``board``, ``module``, ``gpu``, ``cpu`` or ``rail``.
    gap_s: seconds of the window without samples.
    period_s: median seconds between new values; None for fewer than two.
    relative_error: standard error of the mean as a share of it; None where all samples are equal.
    integral_error: standard error of the window's own joules as a share of them.
    """

    sensor: str
    source: str
    covers: str
    watts: Optional[float]
    stdev: Optional[float]
    count: int  # type: ignore[assignment]  # a key of the profile; it hides tuple.count
    reason: Optional[str] = None
    gap_s: float = 0.0
    period_s: Optional[float] = None
    relative_error: Optional[float] = None
    integral_error: Optional[float] = None


class Window(NamedTuple):
    """Counters and power of a device over a window of its monotonic clock.

    cpu_share: share of one core that sampling took.
    seconds: means over bins of equal length: about a second, or a 60th of a longer window; None for
    an empty one. Keys are names of counters, and "power:" with a sensor's name for watts.
    """

    duration_s: float
    counters: Dict[str, Reading]
    power: Tuple[PowerReading, ...]
    cpu_share: Optional[float] = None
    seconds: Dict[str, Tuple[Optional[float], ...]] = {}


class MachineSpeed(NamedTuple):
    """How fast a machine was while something was measured (``profilers.machine_speed``).

    loop_s: mean processor seconds of the rounds of the reference loop that nothing interrupted;
        stdev_s: standard deviation of all. None for too few rounds.
    rounds: of the loop; taken_s: of each, as far as they are kept.
    stolen_share: of the time of all processors, given to other machines by a hypervisor.
    throttled_share: of the periods of a quota, those in which it was used up. None where unknown.
    loop: number of the loop: times of different loops are not compared.
    """

    loop_s: Optional[float]
    stdev_s: Optional[float]
    rounds: int
    stolen_share: Optional[float] = None
    throttled_share: Optional[float] = None
    loop: int = 1
    taken_s: Tuple[float, ...] = ()


class StreamRate(NamedTuple):
    """How many samples arrive at a device in a second, as they were counted for some ``seconds``.

    error: relative standard error of the rate.
    sample_bytes: mean of a sample.
    """

    rate: float
    error: float
    seconds: float
    sample_bytes: float


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


class CodecCost(NamedTuple):
    """Seconds that a compressor takes to encode, and to decode and add, what one message holds."""

    send_s: Samples
    add_s: Samples


class UpdateCost(NamedTuple):
    """Seconds of an optimizer's update: of a device that trains alone, and of a server."""

    update_s: Samples
    service_s: Samples


#: Bytes of an order, or of the report of a step: no more than these.
ORDER_BYTES = 1 << 10


class MessageCost(NamedTuple):
    """Processor seconds at both ends of an encrypted message within a device, after a gradient."""

    message_bytes: int
    send_cpu_s: float
    receive_cpu_s: float


class Repeat(NamedTuple):
    """A repeated measurement of a profiled model; fields as in ``StepProfile``."""

    gradient_s: Samples
    copy_s: Samples
    update_s: Samples
    cpu_s_per_step: float
    speed: Optional[MachineSpeed] = None


class Crowded(NamedTuple):
    """Steps of a device while others on its kernel make some.

    names: of all, itself included.
    repeats: how often, minutes apart.
    """

    names: Tuple[str, ...]
    steps: Repeat
    repeats: int = 1


class BatchTiming(NamedTuple):
    """Gradient times at one batch size."""

    batch: int
    gradient_s: Samples


class BatchMemory(NamedTuple):
    """The most memory that a process had during steps at one batch size.

    host_bytes: its own, without files that it has mapped; None where that cannot be measured.
    accelerator_bytes: of arrays on an accelerator; None without one.
    """

    batch: int
    host_bytes: Optional[int]
    accelerator_bytes: Optional[int] = None


class StepMemory(NamedTuple):
    """Peak memory of a step by batch size, smallest first.

    accelerator_available_bytes: what the process could have of it in all; None where unknown.
    is_shared: the accelerator takes its memory from the host's.
    too_large: the smallest batch size that ran, or would have run, out of memory; None for none.
    reason: why ``host_bytes`` are not known.
    """

    batches: Tuple[BatchMemory, ...]
    accelerator_available_bytes: Optional[int] = None
    is_shared: bool = False
    too_large: Optional[int] = None
    reason: Optional[str] = None


class StepProfile(NamedTuple):
    """Step times of one model on one device.

    A step of a single device takes gradient_s + update_s. A step of a worker in a cluster takes
    gradient_s + copy_s and the exchange with the server.

    service_s: processor time of one update on a device that hosts the parameter server, or in a
        peer. update_s and service_s are those of SGD, or of the job's own optimizer.
    half_batch_s, other_batches: gradient times at half the batch size and at further ones, from
        which those at any other are predicted.
    steps_planned: steps of the training that the time for this profile was derived from.
    layers: elements of each trained variable, in the order of the flat buffer.
    group_cpu_s: processor seconds that a process group of its framework adds to a gradient, its
        exchange aside; None where that is unknown or nothing.
    ready: share of a gradient's time after which each of them has its own; empty where the
        framework does not tell, and in profiles of older versions.
    compressors: costs of the compressors, by kind.
    repeats: mean step seconds of each repeat, in order.
    collectives: backends of torch.distributed there; None in profiles of older versions.
    memory: None in profiles of older versions.
    requested_batch: the batch size asked for, where it did not fit and ``batch`` is a smaller one.
    optimizers: costs of updates by other optimizers, by name; AdamW's are Adam's. Profiles of older
        versions lack SGD's beside a job's own, and their service_s is SGD's.
    clip_s: seconds to clip a gradient by its norm; empty in profiles of older versions.
    micro_batch: most samples that were computed at once; 0 for whole batches.
    precision: in which the forward and backward pass were computed.
    job: whether it is a user's job; ``samples``: those of its training data, where known;
        ``own_optimizer``: whether it brings an optimizer.
    data_s: mean seconds of a gradient that it waits for its batch.
    speed: of the machine, meanwhile; None in profiles of older versions.
    first_step_s: seconds that the first step takes longer than the second one.
    evaluation_s: seconds in which a sample of the test set is read and evaluated; None for an empty
        one, and in profiles of older versions.
    crowded: beside the others on its kernel; None where there are none, or they were not timed
        together.
    between_s: seconds that a device alone takes from one step to the next; ``messages``: to itself,
        by size. Both are empty in profiles of older versions.
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
    compressors: Dict[str, CodecCost] = {}
    repeats: Tuple[float, ...] = ()
    collectives: Optional[Tuple[str, ...]] = None
    job: bool = False
    samples: Optional[int] = None
    own_optimizer: bool = False
    data_s: float = 0.0
    other_batches: Tuple[BatchTiming, ...] = ()
    memory: Optional[StepMemory] = None
    requested_batch: Optional[int] = None
    micro_batch: int = 0
    precision: str = "fp32"
    optimizers: Dict[str, UpdateCost] = {}
    clip_s: Samples = Samples("s", ())
    ready: Tuple[float, ...] = ()
    group_cpu_s: Optional[float] = None
    speed: Optional[MachineSpeed] = None
    first_step_s: float = 0.0
    evaluation_s: Optional[float] = None
    crowded: Optional[Crowded] = None
    between_s: Samples = Samples("s", ())
    messages: Tuple[MessageCost, ...] = ()

    @property
    def planned_batch(self) -> int:
        """The batch size that the profile was made for."""
        return self.requested_batch or self.batch

    @classmethod
    def former_keys(cls) -> Dict[str, str]:
        """Keys of older profiles, each with its present name."""
        return {"senders": "compressors", "visits": "repeats"}


class CurvePoint(NamedTuple):
    """One-way seconds and processor seconds at both ends for one message size, encrypted."""

    message_bytes: int
    seconds: Samples
    send_cpu_s: Optional[float] = None
    receive_cpu_s: Optional[float] = None


class LinkProfile(NamedTuple):
    """A directed link.

    tool: ``iperf3``, or ``python`` for the fallback.
    bytes_per_s: goodput per interval.
    latency_s: half round trips of a small message.
    send_cpu_s, receive_cpu_s: processor seconds per byte of the largest message.
    send_stolen_cpu_s, receive_stolen_cpu_s: those lost by a computation beside it; None if not
        measurable, and from a device to itself.
    plain_send_cpu_s, plain_receive_cpu_s: processor seconds per byte that is not encrypted, of
        iperf3; None without it, and in profiles of older versions.
    measured_s: seconds since the epoch by the operator's clock.
    repeats: repeats, minutes apart, behind all but the goodput; 0 in profiles without this count.
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
    send_stolen_cpu_s: Optional[float] = None
    receive_stolen_cpu_s: Optional[float] = None
    repeats: int = 0
    plain_send_cpu_s: Optional[float] = None
    plain_receive_cpu_s: Optional[float] = None

    @classmethod
    def former_keys(cls) -> Dict[str, str]:
        """Keys of older profiles, each with its present name."""
        stolen = {"send_taken_s": "send_stolen_cpu_s", "receive_taken_s": "receive_stolen_cpu_s"}
        return dict(stolen, visits="repeats")


class IncastProfile(NamedTuple):
    """Bytes/s by peer while all peers send into (``in``) or receive from (``out``) one host."""

    host: str
    direction: str
    tool: str
    bytes_per_s: Dict[str, float]
    measured_s: float = 0.0


def encode(value: Any) -> Any:
    """Plain JSON values of a record, recursively; a value with ``as_text`` becomes that text."""
    if value is None or type(value) in (int, float, str, bool):  # most are
        return value
    if hasattr(value, "as_text"):
        return value.as_text()
    if hasattr(value, "_fields"):
        return {key: encode(item) for key, item in zip(value._fields, value)}
    if isinstance(value, dict):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    return value
