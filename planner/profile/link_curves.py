"""A link's profile holds the message-size curve and the goodput of its probe. Pure."""

from backends.protocol.events import MessagePoint, MessageTimes
from profilers.records.links import CurvePoint, LinkProfile, LinkThroughput
from profilers.records.readings import Samples


def link_profile(source: str, target: str, throughput: LinkThroughput, curve: MessageTimes) -> LinkProfile:
    """The profile after a probe; the first fifth of its intervals is the ramp-up of TCP."""
    rates = throughput.bytes_per_s
    ramp = len(rates) // 5
    link = LinkProfile(
        source,
        target,
        throughput.tool,
        bytes_per_s=Samples("bytes/s", tuple(rates[ramp:]), tuple(rates[:ramp])),
        latency_s=Samples("s", curve.latency_s),
        curve=tuple(_point(point) for point in curve.points),
        send_cpu_s=0.0,
        receive_cpu_s=0.0,
        send_stolen_cpu_s=curve.send_stolen_cpu_s,
        receive_stolen_cpu_s=curve.receive_stolen_cpu_s,
        plain_send_cpu_s=throughput.send_cpu_s,
        plain_receive_cpu_s=throughput.receive_cpu_s,
    )
    return _by_byte(link)


def _point(point: MessagePoint) -> CurvePoint:
    seconds = Samples("s", point.seconds, point.warmup)
    return CurvePoint(point.message_bytes, seconds, point.send_cpu_s, point.receive_cpu_s)


def _by_byte(link: LinkProfile) -> LinkProfile:
    """The link with the processor seconds per byte of its largest message."""
    if not link.curve:
        return link
    size, _, send_s, receive_s = link.curve[-1]
    assert send_s is not None and receive_s is not None, "every probe that is counted states them"
    return link._replace(send_cpu_s=send_s / size, receive_cpu_s=receive_s / size)
