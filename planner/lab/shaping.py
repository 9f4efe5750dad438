"""The arguments of tc(8) that give a port its rate. Pure."""

from collections.abc import Mapping

Command = tuple[str, ...]

#: What passes unshaped, in seconds of the line rate: more lets small messages through for free,
#: less makes tbf miss its rate and cost more processor time.
BUCKET_S = 0.56e-3
#: Below two packets a bucket passes nothing.
BUCKET_BYTES = 3200
#: The longest that a packet waits in a port before it is dropped.
QUEUE_S = 0.02
_PACKET_BYTES = 1500
#: On the wire, and of it the data of TCP; what the kernel keeps of a buffer for headers, rounded
#: up.
_FRAME_BYTES, _SEGMENT_BYTES, _HEADER_BYTES = 1514, 1448, 400
#: The largest buffer that the kernel hands to a port in one piece.
_MOST_BYTES = 65536


def bucket_bytes(rate_bytes_per_s: float) -> int:
    """What a shaper of that rate lets through at once after a pause."""
    return max(BUCKET_BYTES, round(rate_bytes_per_s * BUCKET_S))


def buffer_bytes(rate_bytes_per_s: float) -> int:
    """The largest buffer that a host may hand to its port: one that the bucket holds whole.

    A larger one tbf cuts into packets, each with a timer and a way through the kernel of its own,
    at the expense of what the device computes just then (docs/lab.md has figures). Network cards
    cut by themselves.
    """
    segments = bucket_bytes(rate_bytes_per_s) // _FRAME_BYTES
    return min(_MOST_BYTES, segments * _SEGMENT_BYTES + _HEADER_BYTES)


def one_rate(interface: str, rate_bytes_per_s: float, delay_s: float = 0.0) -> list[Command]:
    """A port with one rate for all it sends, each packet ``delay_s`` late.

    For a port without a qdisc.
    """
    bucket = str(bucket_bytes(rate_bytes_per_s))
    shape = ("tbf", "rate", _bit(rate_bytes_per_s), "burst", bucket, "latency", f"{QUEUE_S * 1e3:g}ms")
    commands: list[Command] = [("qdisc", "add", "dev", interface, "root", "handle", "1:", *shape)]
    if delay_s:
        packets = round(rate_bytes_per_s * (QUEUE_S + delay_s) / _PACKET_BYTES) + 1
        late = ("netem", "delay", f"{delay_s * 1e3:g}ms", "limit", str(packets))
        commands.append(("qdisc", "add", "dev", interface, "parent", "1:1", "handle", "10:", *late))
    return commands


def rates_by_target(interface: str, rate_bytes_per_s: float, targets: Mapping[str, float]) -> list[Command]:
    """A port of one rate that sends to some addresses no faster than ``targets`` says.

    For a port without a qdisc.

    Classes may borrow from the port what others leave: a guaranteed share each, so that the port's
    rate holds.
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
