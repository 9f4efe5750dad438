"""Records of a link: what a probe of its throughput measured, and what messages took."""

from typing import Dict, NamedTuple, Optional, Tuple

from profilers.records.readings import Samples


class LinkThroughput(NamedTuple):
    """What a probe of throughput has measured.

    bytes_per_s: what the receiver got in each interval.
    send_cpu_s, receive_cpu_s: processor seconds of a byte at either end, of a program that sends
        bytes as they are; None where the tool does not tell.
    """

    tool: str
    bytes_per_s: Tuple[float, ...]
    send_cpu_s: Optional[float] = None
    receive_cpu_s: Optional[float] = None


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
        iperf3; None without it.
    measured_s: seconds since the epoch by the operator's clock.
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
    plain_send_cpu_s: Optional[float] = None
    plain_receive_cpu_s: Optional[float] = None

    def check(self) -> None:
        """Raises ValueError where the message sizes of the curve do not rise."""
        sizes = [point.message_bytes for point in self.curve]
        if any(small >= large for small, large in zip(sizes, sizes[1:])):
            raise ValueError("curve: expected rising message sizes, found %s" % sizes)


class IncastProfile(NamedTuple):
    """Bytes/s by peer while all peers send into (``in``) or receive from (``out``) one host."""

    host: str
    direction: str
    tool: str
    bytes_per_s: Dict[str, float]
    measured_s: float = 0.0
