"""A link's profile out of what its probes answered: message-size curves, one for each visit. Pure.

Visits minutes apart tell of one link what messages in a row cannot: within minutes a message costs a processor a fifth
more or less, and what it takes from a computation differs by more.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from profilers.records import CurvePoint, LinkProfile, Samples

#: What a probe of a link answered: ``backends.probe.curve_send``.
Curve = Mapping[str, Any]


def first(source: str, target: str, tool: str, rates: Sequence[float], curve: Curve) -> LinkProfile:
    """A link that was visited once. rates: bytes/s of each interval; a fifth of them passes until they are steady."""
    ramp = len(rates) // 5
    link = LinkProfile(
        source,
        target,
        tool,
        Samples("bytes/s", tuple(rates[ramp:]), tuple(rates[:ramp])),
        Samples("s", tuple(curve["latency_s"])),
        tuple(_point(point) for point in curve["points"]),
        0.0,
        0.0,
        send_taken_s=curve.get("send_taken_s"),
        receive_taken_s=curve.get("receive_taken_s"),
        visits=1,
    )
    return _by_byte(link)


def unchecked(link: LinkProfile) -> bool:
    """Whether it was visited once only; one that was measured before visits were counted does not tell."""
    return link.visits == 1


def pooled(link: LinkProfile, curve: Curve) -> LinkProfile:
    """After another visit: all times of messages, and processor seconds that are the mean of its visits.

    The sizes are those of the first one; one that the other left out, for it took too long just then, stays as it was.
    """
    seen = {point["message_bytes"]: _point(point) for point in curve["points"]}
    points = tuple(
        _joined(point, seen[point.message_bytes], link.visits) if point.message_bytes in seen else point
        for point in link.curve
    )
    again = link._replace(
        latency_s=_both(link.latency_s, Samples("s", tuple(curve["latency_s"]))),
        curve=points,
        send_taken_s=_mean(link.send_taken_s, curve.get("send_taken_s"), link.visits),
        receive_taken_s=_mean(link.receive_taken_s, curve.get("receive_taken_s"), link.visits),
        visits=link.visits + 1,
    )
    return _by_byte(again)


def _point(point: Mapping[str, Any]) -> CurvePoint:
    seconds = Samples("s", tuple(point["seconds"]), tuple(point["warmup"]))
    return CurvePoint(point["message_bytes"], seconds, point["send_cpu_s"], point["receive_cpu_s"])


def _by_byte(link: LinkProfile) -> LinkProfile:
    """With the processor seconds of a byte that its largest message had."""
    size, _, send_s, receive_s = link.curve[-1]
    assert send_s is not None and receive_s is not None, "every probe that counts visits tells them"
    return link._replace(send_cpu_s=send_s / size, receive_cpu_s=receive_s / size)


def _joined(point: CurvePoint, again: CurvePoint, visits: int) -> CurvePoint:
    return point._replace(
        seconds=_both(point.seconds, again.seconds),
        send_cpu_s=_mean(point.send_cpu_s, again.send_cpu_s, visits),
        receive_cpu_s=_mean(point.receive_cpu_s, again.receive_cpu_s, visits),
    )


def _both(samples: Samples, again: Samples) -> Samples:
    return samples._replace(values=samples.values + again.values, warmup=samples.warmup + again.warmup)


def _mean(known: float | None, again: float | None, visits: int) -> float | None:
    """Of so many visits and another one, or of those that could tell."""
    if known is None or again is None:
        return again if known is None else known
    return (visits * known + again) / (visits + 1)
