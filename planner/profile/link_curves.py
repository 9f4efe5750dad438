"""A link's profile holds the message-size curve and the goodput of its probe. Pure."""

from backends.protocol.events import MessageTimes
from profilers.records.links import LinkProfile, LinkThroughput
from profilers.records.readings import Samples


def link_profile(source: str, target: str, throughput: LinkThroughput, curve: MessageTimes) -> LinkProfile:
    """The profile after a probe; the first fifth of its intervals is the ramp-up of TCP.

    Processor seconds per byte are those of the largest message.
    """
    rates = throughput.bytes_per_s
    ramp = len(rates) // 5
    size, _, send_s, receive_s = curve.points[-1] if curve.points else (1, None, None, None)
    return LinkProfile(
        source,
        target,
        throughput.tool,
        bytes_per_s=Samples("bytes/s", tuple(rates[ramp:]), tuple(rates[:ramp])),
        latency_s=Samples("s", curve.latency_s),
        curve=curve.points,
        send_cpu_s=(send_s or 0.0) / size,
        receive_cpu_s=(receive_s or 0.0) / size,
        send_stolen_cpu_s=curve.send_stolen_cpu_s,
        receive_stolen_cpu_s=curve.receive_stolen_cpu_s,
        plain_send_cpu_s=throughput.send_cpu_s,
        plain_receive_cpu_s=throughput.receive_cpu_s,
    )
