"""Links between two devices are estimated from those of both with a third one, the hub. Pure.

Both ways lead through the same network cards: a message between two devices takes as long as the
slower of its ways to the hub and on from there, and costs its ends what these ways cost them.
"""

from profilers.records.links import CurvePoint, LinkProfile
from profilers.records.readings import Samples
from profilers.stats import median

Links = dict[tuple[str, str], LinkProfile]

#: The tool of a link that was not measured.
ESTIMATED = "estimated"
#: Relative standard error of the time of a message on such a link.
ERROR = 0.1


def known_links(links: Links) -> Links:
    """The measured links, and estimates of others by the hub with which they are fastest."""
    names = sorted({name for ends in links for name in ends})
    found = dict(links)
    for source in names:
        for target in names:
            if source != target and (source, target) not in links:
                ways = [(links[source, hub], links[hub, target]) for hub in names if _leads(links, source, hub, target)]
                if ways:
                    found[source, target] = max((_estimate(*way) for way in ways), key=_rate)
    return found


def _leads(links: Links, source: str, hub: str, target: str) -> bool:
    return hub not in (source, target) and (source, hub) in links and (hub, target) in links


def _estimate(sent: LinkProfile, received: LinkProfile) -> LinkProfile:
    """sent: from the source to the hub; received: from the hub to the target."""
    slower = min(sent, received, key=_rate)
    on_receipt = {point.message_bytes: point for point in received.curve}
    pairs = [(point, on_receipt[point.message_bytes]) for point in sent.curve if point.message_bytes in on_receipt]
    return LinkProfile(
        sent.source,
        received.target,
        ESTIMATED,
        slower.bytes_per_s,
        max(sent.latency_s, received.latency_s, key=_median),
        tuple(_point(*pair) for pair in pairs),
        sent.send_cpu_s,
        received.receive_cpu_s,
        min(sent.measured_s, received.measured_s),
        sent.send_stolen_cpu_s,
        received.receive_stolen_cpu_s,
        sent.plain_send_cpu_s,
        received.plain_receive_cpu_s,
    )


def _point(sent: CurvePoint, received: CurvePoint) -> CurvePoint:
    seconds = max(sent.seconds, received.seconds, key=_median)
    return CurvePoint(sent.message_bytes, seconds, sent.send_cpu_s, received.receive_cpu_s)


def _median(samples: Samples) -> float:
    return median(samples.values) if samples.values else 0.0


def _rate(link: LinkProfile) -> float:
    return _median(link.bytes_per_s)
