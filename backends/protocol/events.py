"""The events that an agent sends the operator as it carries out an order, and what orders return.

Events of a run go into its log, and some of their records into result.json and checkpoints.
"""

from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

from backends.protocol.stream_statistics import InjectionStatistics, StreamStatistics
from profilers import addresses_and_ports
from profilers.records.links import CurvePoint
from profilers.records.readings import Window


class ThroughputListening(NamedTuple):
    """The serving end of a throughput probe can be reached at one port a sender."""

    ports: Tuple[int, ...]
    token: str = ""


class StepTimed(NamedTuple):
    """How far the timing of a model's steps is."""

    stage: str  # of ``profilers.steptime.StepProgress``, or ``parts``
    steps: int  # made in it
    step_s: float  # seconds of a step so far, 0 where unknown


class Printed(NamedTuple):
    """A command has printed. ``stream``: out or err."""

    stream: str
    text: str


class Ready(NamedTuple):
    """A member has its framework and its data, and waits for the word to begin.

    labels: its training samples by label, where these are known.
    division: a digest of how all samples were divided, where it has divided them itself by label;
        equal for all members.
    metrics: by name, "higher" or "lower" where the job states that it is better, else empty.
    note: as in ``LoadedJob``.
    """

    labels: Dict[str, int] = {}
    division: str = ""
    metrics: Dict[str, str] = {}
    note: str = ""


class Built(NamedTuple):
    """A member has built its model, in so many seconds."""

    build_s: float


class Joined(NamedTuple):
    """The host has let a member in."""

    member: str


class Silent(NamedTuple):
    """No heartbeat of a member has come for too long."""

    member: str
    reason: str


class Replaced(NamedTuple):
    """A member has come back over another connection."""

    member: str


class Dropped(NamedTuple):
    """The host has lost a member, or sent it away.

    unfit: its model is another than the run's, so that it would be sent away again.
    """

    member: str
    reason: str
    unfit: bool = False


class Left(NamedTuple):
    """A member has left the run for good, because no more samples arrive there.

    fault: their source failed, and did not come to its end.
    """

    member: str
    reason: str
    fault: bool = False


class Refused(NamedTuple):
    """Somebody was not let in; ``reason``: why, of the last one where it is several."""

    reason: str
    connections: int = 1


class Evaluated(NamedTuple):
    """A member has evaluated the weights after ``step`` steps. ``metrics``: by name.

    higher_is_better: names of those metrics. samples: of the test set; 0 where it is not told.
    """

    step: int
    worker: str
    loss: float
    metrics: Dict[str, float]
    seconds: float
    higher_is_better: Tuple[str, ...] = ("accuracy",)
    samples: int = 0


class Diverged(NamedTuple):
    """A member's step gave a loss or a gradient that is not finite.

    ``loss`` is text, since JSON has no infinity.
    """

    member: str
    step: int
    loss: str


class CheckpointWritten(NamedTuple):
    """The host has written the weights after ``step`` steps to a file of its device."""

    path: str
    step: int
    bytes: int


class Saving(NamedTuple):
    """The host still writes what it saves, or waits for what members hand over for that."""


class CheckpointFailed(NamedTuple):
    """A checkpoint could not be written."""

    reason: str


class MemberProgress(NamedTuple):
    """One member so far. ``loss`` is smoothed, ``staleness`` a mean, ``bytes`` go both ways."""

    steps: int
    loss: Optional[float]
    bytes: int
    staleness: Optional[float]
    connected: bool


class Progress(NamedTuple):
    """Where a run stands."""

    done: int
    total: int
    elapsed_s: float
    workers: Dict[str, MemberProgress]


class TimeSpent(NamedTuple):
    """Where a worker's time went, in seconds, over ``steps`` steps."""

    steps: int = 0
    busy_s: float = 0.0  # computing gradients and copying them
    exchange_s: float = 0.0  # sending, receiving and waiting for others
    evaluation_s: float = 0.0  # evaluating
    exchange_cpu_s: float = 0.0  # processor time of exchanges that no gradient hides
    gradient_cpu_s: float = 0.0  # processor time of gradients, as in ``StepProfile.cpu_s_per_step``
    data_s: float = 0.0  # of ``busy_s``, waiting for a batch to be read

    def plus(self, other: "TimeSpent") -> "TimeSpent":
        """The sum of both."""
        return TimeSpent._make(mine + its for mine, its in zip(self, other))


class MemberTelemetry(NamedTuple):
    """What a member's sensors and counters read since the last time, and how it spent its time."""

    window: Window
    spent: TimeSpent
    stream: Optional[StreamStatistics] = None  # None where all its samples were there from the start
    injected: Optional[InjectionStatistics] = None  # None without data injection


#: What an order emits its events with.
Emit = Callable[[Any], None]

#: An order that serves others can be reached; see there.
Listening = addresses_and_ports.Listening

EVENTS = (
    Listening,
    ThroughputListening,
    StepTimed,
    Printed,
    Ready,
    Built,
    Joined,
    Silent,
    Replaced,
    Dropped,
    Left,
    Refused,
    Evaluated,
    Diverged,
    CheckpointWritten,
    CheckpointFailed,
    Saving,
    Progress,
    MemberTelemetry,
)


class CommandMeasurement(NamedTuple):
    """Windows of the seconds before a command and from its start to its end."""

    idle: Window
    busy: Window
    returncode: int  # negative for the signal that ended it


class FolderContent(NamedTuple):
    """What a folder of data holds. ``hash``: of names, sizes and parts of the content."""

    files: int
    bytes: int
    hash: str


class CacheFolder(NamedTuple):
    """The cache of a device."""

    path: str
    identity: str  # equal for devices that share it


class CacheEntry(NamedTuple):
    """A file or a folder in the cache of a device."""

    name: str
    kind: str  # what its name begins with: agent, data, file, model, project, run or claims
    size_bytes: int
    unused_s: float  # since it was used last
    in_use: bool  # by a running agent


class MessageTimes(NamedTuple):
    """What a probe of messages has measured.

    send_stolen_cpu_s, receive_stolen_cpu_s: processor seconds per byte that a computation on all
        processors lacks meanwhile; None where none was asked for, or other work hid it.
    """

    latency_s: Tuple[float, ...]  # half round trips of empty messages
    points: Tuple[CurvePoint, ...]  # smallest first
    send_stolen_cpu_s: Optional[float] = None
    receive_stolen_cpu_s: Optional[float] = None

    def check(self) -> None:
        """Raises ValueError where nothing was measured."""
        sizes_s = ((point.message_bytes > 0 and point.seconds.values) for point in self.points)
        if not self.latency_s or not all(sizes_s):
            raise ValueError("expected seconds of messages that hold something, found none")
        if any(point.send_cpu_s is None or point.receive_cpu_s is None for point in self.points):
            raise ValueError("expected processor seconds of both ends, found none")


class MemberAccount(NamedTuple):
    """What a worker or peer returns at its end."""

    spent: TimeSpent
    build_s: float
    compressor: Dict[str, Any]  # figures of its compressor, such as the CNC ratio


class RunAccount(NamedTuple):
    """What the host of a run gives at its end."""

    done: int
    total: int
    elapsed_s: float
    workers: Dict[str, MemberProgress]
    finished: bool
    reason: Optional[str] = None  # why the run ended before its last step
    evaluations: Tuple[Evaluated, ...] = ()
    service_s: Optional[float] = None  # mean seconds of an update, None where there was none in one place
    cpu_s: float = 0.0  # processor time of hosting, beside that of steps
