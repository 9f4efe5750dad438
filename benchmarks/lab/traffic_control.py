"""The kernel's traffic control limits the rate of a port, by tc(8)."""

from collections.abc import Iterable, Mapping
from contextlib import suppress

from .errors import LabError
from .network import PORT, ip
from .programs import run_program

Command = tuple[str, ...]

#: Burst in seconds of the line rate: a larger one lets small messages pass unshaped, a smaller one
#: makes tbf miss its rate and cost more processor time.
BUCKET_S = 0.56e-3
#: A bucket of less than two packets passes nothing.
BUCKET_BYTES = 3200
#: Longest time that a packet waits in a port before it is dropped.
QUEUE_S = 0.02
_PACKET_BYTES = 1500
#: Bytes of a packet on the wire, those of TCP data in it, and the kernel's headroom in a buffer,
#: rounded up.
_FRAME_BYTES, _SEGMENT_BYTES, _HEADER_BYTES = 1514, 1448, 400
#: The largest buffer that the kernel passes to a port in one piece.
_MOST_BYTES = 65536


def shape(
    switch: str, port: str, namespace: str, rate_bytes_per_s: float, targets: Mapping[str, float], delay_s: float = 0.0
) -> None:
    """Shape a device's cable in both directions, with slower rates to ``targets``.

    Shapers are replaced, not changed. If a shaper's bucket becomes smaller than a waiting packet,
    the packet never leaves and blocks the cable for good.
    """
    for names, interface in ((switch, port), (namespace, PORT)):
        with suppress(LabError):  # there is none yet
            run_program("tc", "-n", names, "qdisc", "del", "dev", interface, "root")
    _tc(switch, one_rate(port, rate_bytes_per_s, delay_s))
    # Classes of any rate send whole buffers at once.
    buffer = BUCKET_BYTES if targets else buffer_bytes(rate_bytes_per_s)
    ip("-n", namespace, "link", "set", PORT, "gso_max_size", str(buffer))
    if targets:
        _tc(namespace, rates_by_target(PORT, rate_bytes_per_s, targets))
    else:
        _tc(namespace, one_rate(PORT, rate_bytes_per_s))


def bucket_bytes(rate_bytes_per_s: float) -> int:
    """The bytes that a shaper of that rate passes at once after a pause."""
    return max(BUCKET_BYTES, round(rate_bytes_per_s * BUCKET_S))


def buffer_bytes(rate_bytes_per_s: float) -> int:
    """The largest buffer that a host may pass to its port: one that fits into the bucket.

    tbf would segment a larger one into packets, each with a timer and its own path through the
    kernel, which costs the device computing time (README.md has figures). Network cards segment
    in hardware.
    """
    segments = bucket_bytes(rate_bytes_per_s) // _FRAME_BYTES
    return min(_MOST_BYTES, segments * _SEGMENT_BYTES + _HEADER_BYTES)


def one_rate(interface: str, rate_bytes_per_s: float, delay_s: float = 0.0) -> list[Command]:
    """Limit everything that a port without a qdisc sends to one rate, each packet late."""
    bucket = str(bucket_bytes(rate_bytes_per_s))
    shape = ("tbf", "rate", _bit(rate_bytes_per_s), "burst", bucket, "latency", f"{QUEUE_S * 1e3:g}ms")
    commands: list[Command] = [("qdisc", "add", "dev", interface, "root", "handle", "1:", *shape)]
    if delay_s:
        packets = round(rate_bytes_per_s * (QUEUE_S + delay_s) / _PACKET_BYTES) + 1
        late = ("netem", "delay", f"{delay_s * 1e3:g}ms", "limit", str(packets))
        commands.append(("qdisc", "add", "dev", interface, "parent", "1:1", "handle", "10:", *late))
    return commands


def rates_by_target(interface: str, rate_bytes_per_s: float, targets: Mapping[str, float]) -> list[Command]:
    """Limit a port without a qdisc to one rate, and its rates to the addresses in ``targets``.

    Classes borrow unused rate from the port; each has a guaranteed share, so that its rate is kept.
    """
    share = rate_bytes_per_s / (len(targets) + 1)
    commands: list[Command] = [
        ("qdisc", "add", "dev", interface, "root", "handle", "2:", "htb", "default", "2"),
        _class(interface, "2:", "2:1", rate_bytes_per_s, rate_bytes_per_s),
        *_leaf(interface, 2, share, rate_bytes_per_s),
    ]
    for number, (address, rate) in enumerate(targets.items(), 3):
        ceiling = min(rate, rate_bytes_per_s)
        commands += _leaf(interface, number, min(share, ceiling), ceiling)
        match = ("u32", "match", "ip", "dst", f"{address}/32", "flowid", f"2:{number:x}")
        commands.append(("filter", "add", "dev", interface, "parent", "2:", "protocol", "ip", "prio", "1", *match))
    return commands


def _leaf(interface: str, number: int, rate: float, ceiling: float) -> list[Command]:
    limit = str(round(ceiling * QUEUE_S) + bucket_bytes(ceiling))
    return [
        _class(interface, "2:1", f"2:{number:x}", rate, ceiling),
        ("qdisc", "add", "dev", interface, "parent", f"2:{number:x}", "bfifo", "limit", limit),
    ]


def _class(interface: str, parent: str, name: str, rate: float, ceiling: float) -> Command:
    buckets = ("burst", str(bucket_bytes(rate)), "cburst", str(bucket_bytes(ceiling)))
    shape = ("htb", "rate", _bit(rate), "ceil", _bit(ceiling), *buckets, "quantum", str(BUCKET_BYTES))
    return ("class", "add", "dev", interface, "parent", parent, "classid", name, *shape)


def _bit(rate_bytes_per_s: float) -> str:
    return f"{round(rate_bytes_per_s * 8)}bit"


def _tc(namespace: str, commands: Iterable[Command]) -> None:
    for command in commands:
        run_program("tc", "-n", namespace, *command)
