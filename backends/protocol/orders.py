"""Orders from the operator to an agent are named tuples, and so are the parts they are made of.

What a member of a run is told is in ``backends.protocol.member_specs``, the orders that begin a
run in ``backends.training.run_orders``. The functions in ``backends.agent.verbs`` are annotated
with what each order returns; the events are in ``backends.protocol.events``.
"""

import re
from typing import Dict, NamedTuple, Optional, Tuple

from backends.protocol.member_specs import Identity, ReplicaSpec

_SHA256 = re.compile("[0-9a-f]{64}")


class Ping(NamedTuple):
    """The operator is there."""


class Go(NamedTuple):
    """The order of that number, which waits for the word, goes on."""

    id: int


class Stop(NamedTuple):
    """The order of that number ends early."""

    id: int


class CollectFacts(NamedTuple):
    """What the device is, with these frameworks, or all."""

    frameworks: Optional[Tuple[str, ...]] = None


class SurveySensors(NamedTuple):
    """How often its power sensors say something new."""


class FindPackages(NamedTuple):
    """The versions of installed packages by name, None for those that are absent."""

    names: Tuple[str, ...]


class StartFramework(NamedTuple):
    """Import a framework and tell what it computes on."""

    name: str


class ReadClock(NamedTuple):
    """Seconds since the epoch, by its clock."""


class MeasureIdle(NamedTuple):
    """Counters and sensors while nothing runs there."""

    seconds: float


class MeasureCommand(NamedTuple):
    """Counters and sensors before a command and while it runs."""

    command: Tuple[str, ...]
    idle_s: float


class FindFreePort(NamedTuple):
    """A TCP port of the device on which nobody listens."""


class RunScript(NamedTuple):
    """Run one rank of a user's own script to its end; the answer is its exit code."""

    command: Tuple[str, ...]  # python as its first word is the Python that runs the agent
    folder: str  # where it runs
    environment: Dict[str, str]  # besides the agent's own
    address: Optional[str]  # of the device, whose interface the ranks use; None for a rank alone


class StoreFile(NamedTuple):
    """Keep a file in the cache under a plain name; ``size`` raw bytes follow the order."""

    name: str
    size: int


class FindFile(NamedTuple):
    """The path of a file in the cache, or None where it is missing or damaged."""

    name: str
    digest: str  # SHA-256 of its content


class FindMissing(NamedTuple):
    """Those of some contents, by their SHA-256 in hexadecimal digits, that the cache lacks."""

    digests: Tuple[str, ...]


class ProjectFile(NamedTuple):
    """One file of a project."""

    path: str  # relative to the project's folder, with slashes
    digest: str  # SHA-256 of its content
    mode: int  # its permissions


class AssembleProject(NamedTuple):
    """Put files whose contents are in the cache together in a folder of it; returns its path."""

    name: str  # of the folder, equal for equal files
    files: Tuple[ProjectFile, ...]


def cached_as(digest: str) -> str:
    """The name in the cache of a project's file. Raises ValueError for what is no SHA-256."""
    if not _SHA256.fullmatch(digest):
        raise ValueError("%r is not a SHA-256 in hexadecimal digits" % digest)
    return "file-" + digest


class FetchFile(NamedTuple):
    """The content of a file."""

    path: str


class RemoveFile(NamedTuple):
    """Remove a file."""

    path: str


class SurveyData(NamedTuple):
    """What a folder of data on the device holds."""

    path: str


class FindCache(NamedTuple):
    """Where the device's cache is; the agent that tells this uses nothing of it any more."""


class ListCache(NamedTuple):
    """What planner has left in the cache."""


class RemoveEntries(NamedTuple):
    """Remove entries of the cache."""

    names: Tuple[str, ...]


class FindInterfaceAddress(NamedTuple):
    """The address under which others reach a network interface.

    interface: its name, or one of its addresses.
    """

    interface: str


class FindAddressTowards(NamedTuple):
    """The address from which another device is reached."""

    target: str


class AwaitReachability(NamedTuple):
    """Greet all that connect to an address, which shows them that it is reached."""

    address: str


class ProbeReachability(NamedTuple):
    """Connect to a device that awaits it; None, or why it is not reached."""

    address: str
    port: int
    token: str


class ServeThroughput(NamedTuple):
    """Receive plain bytes from ``count`` senders at once. ``tool``: iperf3 or python."""

    address: str
    tool: str
    count: int  # type: ignore[assignment]  # hides the method count of tuples
    seconds: float


class SendThroughput(NamedTuple):
    """Send plain bytes for some seconds."""

    address: str
    port: int
    tool: str
    seconds: float
    token: str


class ServeMessages(NamedTuple):
    """Acknowledge the messages of a probe through the data plane."""

    address: str
    identity: Identity


class SendMessages(NamedTuple):
    """Time messages of several sizes through the data plane."""

    address: str
    port: int
    identity: Identity
    sizes: Tuple[int, ...]  # bytes
    repeats: int = 5  # messages of a size
    limit_s: float = 1.2  # for each size
    enough_s: float = 0.4  # a size that has taken as long is not repeated for more than the fewest messages
    turns: int = 0  # of transfers that tell what they take from a computation at either end; 0 for none
    turn_s: float = 0.15  # of one turn, which is one message at least


class LoopbackEnds(NamedTuple):
    """Who a device is at both ends of a connection to itself."""

    server: Identity
    sender: Identity


class TimeSteps(NamedTuple):
    """Measure a model's steps at one batch size, as long as ``protocol`` asks for.

    The model is built, and the memory of its steps measured, before the word to go on.
    """

    replica: ReplicaSpec
    batch: int
    protocol: str
    ends: Optional[LoopbackEnds] = None  # None to time no messages of the device to itself


class RepeatSteps(NamedTuple):
    """Time a model again that was measured before, for some seconds."""

    replica: ReplicaSpec
    batch: int
    seconds: float
    waits: bool = False  # whether it makes steps that do not count until the word to go on


class WatchStream(NamedTuple):
    """Count the samples that arrive at the device for some seconds, and use none of them."""

    text: str  # of a ``StreamSpec``, which is no replay
    device: str  # whose stream it is
    seconds: float
