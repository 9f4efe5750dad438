"""The members of a run exchange frames: one of these heads, and raw arrays behind it.

A class documents the arrays that follow it; where it says nothing there are none. Each field is
checked on arrival (``backends.network.framing``).
"""

from typing import Any, Dict, NamedTuple, Optional, Tuple

from backends.frameworks.layout import Layout
from backends.frameworks.optimizer import GradientSettings, OptimizerSettings
from backends.protocol.stream_statistics import StreamEnd, StreamPosition

#: Kinds of work that a member is given: a step, an evaluation, the end of the run; and among peers
#: to give weights to those that join, to take them, and to save all arrays to a checkpoint.
STEP, EVALUATE, FINISH, GIVE, TAKE, SAVE = "step", "evaluate", "finish", "give", "take", "save"

#: Names of a peer's arrays: weights and velocity, (parameters,) float32 each; what steps change of
#: the state, and what they do not, which is sent with the weights: (state,) float32 together.
#: Its exchange names all others. Checkpoints have the same names.
WEIGHTS, STATE, FROZEN = "own", "state", "frozen"
#: Name of the offset, (1,) int64, at which a peer goes on with its stream of samples.
STREAM = "stream"


class MessageHead(NamedTuple):
    """What a receiver needs to know of a ``strategies.message.Message`` before its arrays."""

    kind: str  # as of the message
    size: int  # elements of the vector
    counts: Tuple[int, ...]  # rows of each array


class ArraySpec(NamedTuple):
    """The type of an array, as numpy writes it, and its shape."""

    dtype: str
    shape: Tuple[int, ...]


class HeartbeatHello(NamedTuple):
    """Heartbeats come over this connection."""


class WorkerHello(NamedTuple):
    """A worker joins.

    own: the arrays of its compressor, and of its optimizer if it has one.
    frozen: the first elements of the state, which no step changes.
    """

    layout: Layout
    own: Tuple[ArraySpec, ...]
    frozen: int = 0


class PeerHello(NamedTuple):
    """A peer joins.

    address, port: where it listens for other peers.
    """

    layout: Layout
    address: str
    port: int
    digest: str  # equal for equal weights and velocities


class MailboxHello(NamedTuple):
    """Messages of a peer come over this connection."""


class Heartbeat(NamedTuple):
    """A member is alive."""


class HeartbeatAnswer(NamedTuple):
    """So is the other end. ``epoch``: the one that there is or must be."""

    epoch: int


class InitialWeightsRequest(NamedTuple):
    """The first worker of a new run is to send its weights."""


class Resumption(NamedTuple):
    """A worker goes on with the run's state. Arrays: that, and with ``own`` its compressor's."""

    own: bool
    offset: int = 0  # of the stream, at which it goes on


class LocalRound(NamedTuple):
    """So many steps of one's own, whose change takes the place of a gradient."""

    steps: int
    scale: float = 1.0  # by which the change is multiplied


class Share(NamedTuple):
    """Data injection: so many own samples of a batch, drawn at random, go to these members."""

    samples: int
    receivers: Tuple[str, ...]


class SharedSamples(NamedTuple):
    """Samples of another member's step. Arrays: their bytes, one after the other.

    sizes: bytes of each.
    """

    step: int
    sizes: Tuple[int, ...]


class WorkerStep(NamedTuple):
    """Compute a gradient with these settings. Arrays: weights."""

    step: int
    batch: int
    gradient: GradientSettings
    hand_over: bool  # whether the worker's own arrays are to follow the gradient
    weights: MessageHead
    rate: float  # of the worker's optimizer, where it has one
    local: Optional[LocalRound] = None  # None for one gradient
    saved_offset: int = 0  # of the worker's stream, before which a checkpoint contains all samples
    share: Optional[Share] = None  # None where the member gives nothing to others


class WorkerEvaluation(NamedTuple):
    """Evaluate after ``step`` steps. Arrays: weights, and what steps change of the run's state."""

    step: int
    weights: MessageHead


class PeerAddress(NamedTuple):
    """Where a peer listens for others."""

    name: str
    address: str
    port: int


class PeerStep(NamedTuple):
    """Compute a gradient and exchange it."""

    step: int
    epoch: int
    members: Tuple[PeerAddress, ...]  # of the epoch, in the order of their ranks
    batch: int
    rate: float
    gives_to: Tuple[str, ...]  # members that receive this one's weights (knowledge transfer)
    local: Optional[LocalRound] = None  # None for one gradient
    outer: Optional[OptimizerSettings] = None  # what is done with the mean change of a round
    saved_offset: int = 0  # of the member's stream, before which a checkpoint contains all samples
    share: Optional[Share] = None  # None where the member gives nothing to others


class PeerTask(NamedTuple):
    """Work other than a step. Arrays, where weights are to be taken: these, velocity and state."""

    kind: str  # EVALUATE, TAKE, GIVE or SAVE


class Finish(NamedTuple):
    """The run is over. ``hand_over``: whether your arrays are wanted for the last checkpoint."""

    hand_over: bool


class Done(NamedTuple):
    """What was asked for is done."""


class Gradient(NamedTuple):
    """A gradient. Arrays: its message, the changing state, and the compressor's if asked for."""

    loss: float
    seconds: float  # time of its computation
    gradient: MessageHead
    stream: Optional[StreamPosition] = None  # with this gradient's samples; None without a stream


class StepAbandoned(NamedTuple):
    """A step is not made, for its samples have not arrived; another member makes it.

    leaves: why the member takes no part any more; None where the run is over.
    """

    leaves: Optional[StreamEnd] = None


class MemberFailed(NamedTuple):
    """A peer has failed in a step or an evaluation. Its weights are those after the step before.

    of_job: whether the user's own code is at fault, which ends the run.
    """

    reason: str
    of_job: bool


class Scores(NamedTuple):
    """An evaluation: means over the test set, and its seconds; as ``events.Evaluated``."""

    loss: float
    metrics: Dict[str, float]
    seconds: float
    higher_is_better: Tuple[str, ...] = ("accuracy",)
    samples: int = 0


class RequestedArrays(NamedTuple):
    """Arrays: a worker's weights and state at the start, or its compressor's at the end."""


class PeerStepDone(NamedTuple):
    """A step is made, or was interrupted because the members changed or the run was stopped."""

    loss: float
    batch: int  # samples computed in ``seconds``
    seconds: float
    sent_bytes: int  # to other peers since the last step
    interrupted: bool
    steps: int = 1  # gradients that the step consists of
    stream: Optional[StreamPosition] = None  # with this step's samples; None without a stream


class WeightsOffer(NamedTuple):
    """A peer is about to hand over its arrays. ``digest``: equal for equal weights."""

    digest: str


class WeightsReply(NamedTuple):
    """``wanted``: whether the weights are to be among them, for nobody else has sent the same."""

    wanted: bool


class NamedArrays(NamedTuple):
    """Arrays: all of these, one after the other."""

    arrays: Dict[str, Tuple[ArraySpec, ...]]


class PeerMessage(NamedTuple):
    """A message of one peer to another. Arrays: those of the message."""

    kind: str  # what the exchange calls it
    step: int
    epoch: int
    message: MessageHead
    asks: bool = False  # whether it is to be answered at once
    batch: int = 0  # samples of a gradient
    weight: float = 1.0  # of the mass that is pushed


class ProbeMessage(NamedTuple):
    """So many raw bytes follow; none begin and end a turn beside a computation."""

    bytes: int


class ProbeReceived(NamedTuple):
    """The message has arrived, for so many processor seconds of the receiver."""

    cpu_s: float


class ComputeBeside(NamedTuple):
    """Compute while the next messages come."""


class EndTurns(NamedTuple):
    """There are no more turns beside a computation."""


class StolenTime(NamedTuple):
    """Processor seconds that the turns took from the computation; None where other work hid it."""

    stolen_cpu_s: Optional[float]


class EndProbe(NamedTuple):
    """The probe is over."""


#: Any of the classes above.
Frame = Any
