"""Links: what a profile tells of messages on every pair of devices, and of a device's whole link.

The time of a message is its latency and its bytes over the rate of the link. Its processor time at
either end is a part for any message and a part for each byte, by least squares of the relative
errors over the sizes that were probed.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from planner.arrays import Bools, Floats
from planner.profile.estimated_links import ERROR, ESTIMATED, known_links
from planner.profile.file import DeviceProfile, Profile
from profilers import stats
from profilers.records.links import CurvePoint, LinkProfile
from profilers.records.readings import Samples
from profilers.records.step_costs import MessageCost
from profilers.records.steps import StepProfile

Links = dict[tuple[str, str], LinkProfile]

#: Payload share of Ethernet's line rate at 1500-byte packets.
PAYLOAD = 0.941
#: A host's link shows no contention when all peers at once get this share of what each gets alone.
UNCONTENDED = 0.95
#: From this factor on the packets of a what-if arrive one by one where those measured arrived in
#: bursts: a byte that cost a processor 1 to 1.6 ns at 1000 Mbit/s cost 4 to 16 ns at 40 to 100.
FAR_SLOWER = 4.0


class Pairs(NamedTuple):
    """Messages from one of N devices to another, (N, N) [from, to]; the diagonal is to itself.

    A message of B bytes takes latency_s + B / bytes_per_s, and at either end processor seconds: a
    part for any message and one for each byte, which is encrypted.

    latency_s: infinite where the link was not measured; bytes_per_s: of one connection.
    send_cpu_s, receive_cpu_s: of any message; send_cpu_per_byte, receive_cpu_per_byte: of a byte.
    send_stolen_per_byte, receive_stolen_per_byte: that a computation at this end lacks meanwhile.
    send_plain_per_byte, receive_plain_per_byte: of a byte that is not encrypted.
    """

    latency_s: Floats
    bytes_per_s: Floats
    send_cpu_s: Floats
    receive_cpu_s: Floats
    send_cpu_per_byte: Floats
    receive_cpu_per_byte: Floats
    send_stolen_per_byte: Floats
    receive_stolen_per_byte: Floats
    send_plain_per_byte: Floats
    receive_plain_per_byte: Floats

    @property
    def reachable(self) -> Bools:
        """(N, N): both directions were measured."""
        return np.isfinite(self.latency_s + self.latency_s.T)

    def seconds(self, message_bytes: float) -> Floats:
        """(N, N) seconds of a message, both ends otherwise idle; infinite over unknown links."""
        return self.latency_s + message_bytes / self.bytes_per_s

    def sending_s(self, message_bytes: float) -> Floats:
        """(N, N) processor seconds of the sender."""
        return self.send_cpu_s + message_bytes * self.send_cpu_per_byte

    def receiving_s(self, message_bytes: float) -> Floats:
        """(N, N) processor seconds of the receiver."""
        return self.receive_cpu_s + message_bytes * self.receive_cpu_per_byte

    def stolen_by_sending_s(self, message_bytes: float) -> Floats:
        """(N, N) processor seconds that a computation on the sender lacks."""
        return np.maximum(self.sending_s(message_bytes), message_bytes * self.send_stolen_per_byte)

    def stolen_by_receiving_s(self, message_bytes: float) -> Floats:
        """(N, N) processor seconds that a computation on the receiver lacks."""
        return np.maximum(self.receiving_s(message_bytes), message_bytes * self.receive_stolen_per_byte)


def known(profile: Profile) -> Links:
    """The links that were measured, and estimates of others, by source and target."""
    return known_links({(link.source, link.target): link for link in profile.links if link.bytes_per_s.values})


def rate_bytes_per_s(link: LinkProfile) -> float:
    """Median goodput of a link."""
    return stats.median(link.bytes_per_s.values)


def cap_bytes_per_s(device: DeviceProfile, what_if: float | None) -> float:
    """Bytes/s that a network is held to: the rate of a what-if, else the declared, less framing."""
    declared = device.device.get("rate_bytes_per_s") if what_if is None else what_if
    return math.inf if declared is None else float(declared) * PAYLOAD


def of_pairs(profile: Profile, steps: Mapping[str, StepProfile], caps: Mapping[str, float]) -> tuple[Pairs, Floats]:
    """Messages between all pairs of the devices in ``steps``, in that order.

    Also (N, N) relative standard errors of their rates. caps: bytes/s by device; they hold no
    loopback.
    """
    names, links = list(steps), known(profile)
    shape = (len(names), len(names))
    fields = {name: np.zeros(shape) for name in Pairs._fields}
    fields["latency_s"], fields["bytes_per_s"], error = np.full(shape, np.inf), np.full(shape, np.inf), np.zeros(shape)
    for i, k in np.ndindex(shape):
        link = links.get((names[i], names[k]))
        if i == k and steps[names[i]].costs.messages:
            link = _to_itself(names[i], steps[names[i]].costs.messages)
        if link is None:
            continue
        cap = math.inf if i == k else min(caps[names[i]], caps[names[k]])
        fields["latency_s"][i, k] = stats.median(link.latency_s.values) if link.latency_s.values else 0.0
        fields["bytes_per_s"][i, k] = min(rate_bytes_per_s(link), cap)
        error[i, k] = math.hypot(stats.standard_error(link.bytes_per_s.values), ERROR * (link.tool == ESTIMATED))
        for name, value in _processor(link).items():
            fields[name][i, k] = value
    return Pairs(**fields), error


def _to_itself(name: str, messages: Sequence[MessageCost]) -> LinkProfile:
    """A device's link to itself, by its messages after gradients of the model."""
    largest, latency_s = messages[-1], messages[0].seconds / 2
    rate = largest.message_bytes / max(1e-9, largest.seconds - latency_s)
    costs = (CurvePoint(each.message_bytes, Samples("s", ()), each.send_cpu_s, each.receive_cpu_s) for each in messages)
    return LinkProfile(
        name, name, "messages", Samples("bytes/s", (rate,)), Samples("s", (latency_s,)), tuple(costs),
        largest.send_cpu_s / largest.message_bytes, largest.receive_cpu_s / largest.message_bytes,
    )  # fmt: skip


class _Cost(NamedTuple):
    """Processor seconds of any message, and of a byte."""

    fixed_s: float
    s_per_byte: float


def _processor(link: LinkProfile) -> dict[str, float]:
    """Fields of ``Pairs`` on processor seconds.

    A computation was timed beside encrypted messages: beside plain ones it lacks as much less as
    encrypting costs.
    """
    points = [
        (each.message_bytes, each.send_cpu_s, each.receive_cpu_s)
        for each in link.curve
        if each.send_cpu_s is not None and each.receive_cpu_s is not None
    ]
    sizes = np.array([point[0] for point in points], np.float64)
    found = {}
    for place, end in ((1, "send"), (2, "receive")):
        measured_s = np.array([point[place] for point in points], np.float64)
        cost = _line(sizes, measured_s) if len(points) > 1 else _Cost(0.0, getattr(link, f"{end}_cpu_s"))
        plain = getattr(link, f"plain_{end}_cpu_s")
        found[f"{end}_cpu_s"], found[f"{end}_cpu_per_byte"] = cost
        found[f"{end}_stolen_per_byte"] = getattr(link, f"{end}_stolen_cpu_s") or 0.0
        found[f"{end}_plain_per_byte"] = cost.s_per_byte if plain is None else plain
    return found


def _line(sizes: Floats, costs_s: Floats) -> _Cost:
    """By least squares of the relative errors, both parts at least 0."""
    from scipy.optimize import nnls

    costs_s = np.maximum(costs_s, 1e-9)
    unit = np.array([1.0, 1.0 / sizes.max()])  # so that both parts are of one magnitude
    parts, _ = nnls(np.stack([np.ones_like(sizes), sizes], axis=1) / costs_s[:, None] * unit, np.ones_like(sizes))
    return _Cost(*(parts * unit).tolist())


def capacity_bytes_per_s(profile: Profile, host: str, direction: str, cap_bytes_per_s: float) -> float:
    """Bytes/s of all peers at once into (``in``) or out of (``out``) a host, no more than its cap.

    The cap, which may be infinite, where they do not slow one another; the best pair's rate where
    no incast was measured. All peers count at their measured rates: the capacity of the host's link
    depends neither on candidates nor on a what-if.
    """
    links = known(profile)
    ends = {peer: (peer, host) if direction == "in" else (host, peer) for peer in profile.devices if peer != host}
    alone = {peer: rate_bytes_per_s(links[each]) for peer, each in ends.items() if each in links}
    for incast in profile.incasts:
        peers = [peer for peer in incast.bytes_per_s if peer in alone]
        if (incast.host, incast.direction) == (host, direction) and len(peers) > 1:
            together = sum(incast.bytes_per_s[peer] for peer in peers)
            contended = together < UNCONTENDED * sum(alone[peer] for peer in peers)
            return min(together, cap_bytes_per_s) if contended else cap_bytes_per_s
    return min(max(alone.values(), default=math.inf), cap_bytes_per_s)


def unlike_measured(profile: Profile, rates: Mapping[str, float]) -> list[str]:
    """Notes on what-if rates that are faster than measured, or far slower."""
    notes = []
    for name, rate in rates.items():
        found = ((ends, link) for ends, link in known(profile).items() if name in ends and len(set(ends)) > 1)
        fastest, asked = max((rate_bytes_per_s(link) for _, link in found), default=math.nan), rate * PAYLOAD
        shown = f"--rate {name}: its links measured {fastest * 8e-6:.3g} Mbit/s at most; "
        if fastest < asked:
            notes.append(shown + "a faster network than that cannot be predicted from this profile")
        elif fastest > FAR_SLOWER * asked:
            slower = f"on a network more than {FAR_SLOWER:g} times slower "
            notes.append(shown + slower + "each byte costs more processor time, which only a profile tells")
    return notes
