"""A member of a run is told what it trains, on which data, and where it reaches the host."""

from typing import NamedTuple, Optional, Tuple

from profilers.records.steps import ComputeSettings


class Identity(NamedTuple):
    """PEM texts of one member of a run: its certificate, its key and the run's authority."""

    certificate: str
    key: str
    authority: str


class JobSpec(NamedTuple):
    """A user's job: a function without arguments in a module of a project.

    text: how the user named it.
    folder: the project's, on the device.
    data: the folder of the data set that is on the device already; None for none.
    """

    text: str
    folder: str
    module: str
    function: str
    data: Optional[str] = None


class ReplicaSpec(NamedTuple):
    """A model to build: a known one, one of a user's file, or that of a user's job.

    is_sharded: a member holds a share of the model.
    """

    framework: str
    model: str
    input_shape: Optional[Tuple[int, ...]] = None  # None for a model that has its own, and its own classes
    classes: Optional[int] = None
    seed: int = 0  # of the initial weights
    slowdown: float = 1.0  # how many times slower than it is the device computes
    job: Optional[JobSpec] = None
    compute: ComputeSettings = ComputeSettings()
    is_sharded: bool = False


#: The partition in which all devices' samples are drawn alike.
IID = "iid"


class DataPart(NamedTuple):
    """A member's part of training data that every member can read.

    weights: of all members, in proportion to which the samples are dealt out.
    seed: the same for all.
    partition: text of a ``data.partition.Partition``.
    names: of all members; a partition by label needs them.
    """

    weights: Tuple[float, ...]
    member: int  # the place of this one among them
    seed: int
    partition: str = IID
    names: Tuple[str, ...] = ()


class StreamOrder(NamedTuple):
    """A member's samples arrive while it trains.

    text: of a ``StreamSpec``.
    seed: of the order in which a replay gives its samples, the same in a resumed run.
    rates_seed: of the rates that are drawn, the same for all members.
    folder: a name in the device's cache, for samples that do not fit into memory.
    """

    text: str
    seed: int
    rates_seed: int
    folder: str


class InjectionOrder(NamedTuple):
    """A member may give samples to others, and takes in theirs.

    text: of an ``InjectionSpec``.
    seed: of the choice of samples.
    folder: a name in the device's cache, for malformed samples.
    """

    text: str
    seed: int
    folder: str


class MemberSpec(NamedTuple):
    """One member's model and data.

    starting_s: predicted seconds of building its model and of its first step; 0 where unknown.

    part: of the data of a job; None where ``train`` and ``test`` are files on the device.
    stream: None where all samples are there from the start.
    injection: None where its samples stay on the device.
    """

    name: str
    replica: ReplicaSpec
    train: str  # path on its device; empty for a job
    test: str
    batch: int
    seed: int  # of the order of its batches
    part: Optional[DataPart] = None
    stream: Optional[StreamOrder] = None
    injection: Optional[InjectionOrder] = None
    starting_s: float = 0.0


class HostAddress(NamedTuple):
    """Where a member reaches the host of its run."""

    address: str
    port: int
    identity: Identity
    heartbeat_s: float  # silence after which either is taken for lost
