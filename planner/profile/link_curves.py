"""A link's profile is the mean of its probes' message-size curves. Pure.

Probes are repeated minutes apart: processor times vary by a fifth or more between them, which
messages in a row do not show.
"""

from backends.protocol.events import MessagePoint, MessageTimes
from planner.profile.machine_speed import joined_speed
from profilers.goodput import LinkThroughput
from profilers.records.links import CurvePoint, LinkProfile
from profilers.records.readings import Samples


def first(source: str, target: str, throughput: LinkThroughput, curve: MessageTimes) -> LinkProfile:
    """The profile after a first probe; the first fifth of its intervals is the ramp-up of TCP."""
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
        repeats=1,
        plain_send_cpu_s=throughput.send_cpu_s,
        plain_receive_cpu_s=throughput.receive_cpu_s,
        send_speed=curve.send_speed,
        receive_speed=curve.receive_speed,
    )
    return _by_byte(link)


def unchecked(link: LinkProfile) -> bool:
    """Whether the link was probed once only; older profiles count no repeats."""
    return link.repeats == 1


def pooled(link: LinkProfile, curve: MessageTimes) -> LinkProfile:
    """The link after another probe: times are appended, processor seconds are means of all probes.

    Sizes are those of the first probe; a size that this one left out stays as it was.
    """
    again = {point.message_bytes: _point(point) for point in curve.points}
    both = link._replace(
        latency_s=_both(link.latency_s, Samples("s", curve.latency_s)),
        curve=tuple(_joined(point, again.get(point.message_bytes), link.repeats) for point in link.curve),
        send_stolen_cpu_s=_mean(link.send_stolen_cpu_s, curve.send_stolen_cpu_s, link.repeats),
        receive_stolen_cpu_s=_mean(link.receive_stolen_cpu_s, curve.receive_stolen_cpu_s, link.repeats),
        repeats=link.repeats + 1,
        send_speed=joined_speed([link.send_speed, curve.send_speed]),
        receive_speed=joined_speed([link.receive_speed, curve.receive_speed]),
    )
    return _by_byte(both)


def _point(point: MessagePoint) -> CurvePoint:
    seconds = Samples("s", point.seconds, point.warmup)
    return CurvePoint(point.message_bytes, seconds, point.send_cpu_s, point.receive_cpu_s)


def _by_byte(link: LinkProfile) -> LinkProfile:
    """The link with the processor seconds per byte of its largest message."""
    size, _, send_s, receive_s = link.curve[-1]
    assert send_s is not None and receive_s is not None, "every probe that is counted states them"
    return link._replace(send_cpu_s=send_s / size, receive_cpu_s=receive_s / size)


def _joined(point: CurvePoint, again: CurvePoint | None, repeats: int) -> CurvePoint:
    if again is None:
        return point
    return point._replace(
        seconds=_both(point.seconds, again.seconds),
        send_cpu_s=_mean(point.send_cpu_s, again.send_cpu_s, repeats),
        receive_cpu_s=_mean(point.receive_cpu_s, again.receive_cpu_s, repeats),
    )


def _both(samples: Samples, again: Samples) -> Samples:
    return samples._replace(values=samples.values + again.values, warmup=samples.warmup + again.warmup)


def _mean(known: float | None, again: float | None, repeats: int) -> float | None:
    """The mean of ``repeats`` probes and another one; None stands for no value."""
    if known is None or again is None:
        return again if known is None else known
    return (repeats * known + again) / (repeats + 1)
