"""Link costs are those of an exchange on every pair of devices, and the capacity of a link."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from planner.arrays import Bools, Floats
from planner.predict.compressor_costs import MessageBytes
from planner.predict.message_time import processor_s, rate_bytes_per_s, relative_error, transfer_s
from planner.profile.estimated_links import ERROR, ESTIMATED, Links, known_links
from planner.profile.file import DeviceProfile, Profile
from profilers.records.links import CurvePoint, LinkProfile
from profilers.records.readings import Samples
from profilers.records.steps import ORDER_BYTES, MessageCost, StepProfile

#: Payload share of Ethernet's line rate at 1500-byte packets.
PAYLOAD = 0.941
#: A host's link shows no contention when all peers at once get this share of what each gets alone.
UNCONTENDED = 0.95
#: From this factor on the packets of a what-if arrive one by one where those measured arrived in
#: bursts: a byte that cost a processor 1 to 1.6 ns at 1000 Mbit/s cost 4 to 16 ns at 40 to 100
#: (benchmarks/log/results.md).
FAR_SLOWER = 4.0


class PairCosts(NamedTuple):
    """Uncontended costs of an exchange, (N, N) [worker, host] each; a diagonal one is co-located.

    up_s, down_s: seconds to the host and back, infinite where the link was not measured.
    worker_cpu_s, host_cpu_s: processor seconds at each end, of both messages and of an order; all
        the host's on the diagonal, where one order counts for both ends.
    host_stolen_cpu_s: processor seconds that a computation on the host lacks during an exchange.
    send_stolen_cpu_s, receive_stolen_cpu_s: those that computations on the worker and on the host
        lack while a message goes up.
    error: relative standard error of up_s + down_s.
    weights_s: seconds of a message of all weights, one way, [from, to].
    latency_s: seconds of an empty message, one way, [from, to].
    order_cpu_s: on the diagonal, processor seconds of an end that receives an order and sends a
        report; 0 elsewhere, and where no loopback was measured.
    """

    up_s: Floats
    down_s: Floats
    worker_cpu_s: Floats
    host_cpu_s: Floats
    host_stolen_cpu_s: Floats
    send_stolen_cpu_s: Floats
    receive_stolen_cpu_s: Floats
    error: Floats
    weights_s: Floats
    latency_s: Floats
    order_cpu_s: Floats

    @property
    def reachable(self) -> Bools:
        """(N, N): worker i has measured links with host k both ways."""
        return np.isfinite(self.up_s + self.down_s)


def known(profile: Profile) -> Links:
    """The links that were measured, and estimates of others, by source and target."""
    return known_links({(link.source, link.target): link for link in profile.links if link.bytes_per_s.values})


def cap_bytes_per_s(device: DeviceProfile, what_if: float | None) -> float:
    """Bytes/s that a network is held to: the rate of a what-if, else the declared, less framing."""
    declared = device.device.get("rate_bytes_per_s") if what_if is None else what_if
    return math.inf if declared is None else float(declared) * PAYLOAD


def of_pairs(
    profile: Profile, steps: Mapping[str, StepProfile], caps: Mapping[str, float], sizes: MessageBytes
) -> PairCosts:
    """Costs of all pairs of the devices in ``steps``, in that order; both mappings are by device.

    steps: the chosen timings; caps: bytes/s.
    """
    names, links = list(steps), known(profile)
    for name, step in steps.items():
        if step.messages:
            links[name, name] = _to_itself(name, step.messages, links.get((name, name)))
    pairs = [[_pair(links, worker, host, caps, sizes) for host in names] for worker in names]
    costs = {field: np.array([[each[field] for each in row] for row in pairs]) for field in pairs[0][0]}
    return PairCosts(**costs)


def _to_itself(name: str, messages: Sequence[MessageCost], loopback: LinkProfile | None) -> LinkProfile:
    """A device's link to itself, by its messages after gradients of the model.

    loopback: its seconds count, where it was measured.
    """
    largest, orders_s = messages[-1], messages[0].seconds / 2
    link = loopback or LinkProfile(
        name, name, "messages", Samples("bytes/s", (largest.message_bytes / max(1e-9, largest.seconds - orders_s),)),
        Samples("s", (orders_s,)), (), 0.0, 0.0,
    )  # fmt: skip
    seconds = tuple(point._replace(send_cpu_s=None, receive_cpu_s=None) for point in link.curve)
    own_s = [() if loopback else (max(each.seconds - orders_s, each.seconds / 2),) for each in messages]
    costs = tuple(
        CurvePoint(each.message_bytes, Samples("s", taken_s), each.send_cpu_s, each.receive_cpu_s)
        for each, taken_s in zip(messages, own_s, strict=True)
    )
    return link._replace(
        curve=seconds + costs,
        send_cpu_s=largest.send_cpu_s / largest.message_bytes,
        receive_cpu_s=largest.receive_cpu_s / largest.message_bytes,
    )


def _pair(links: Links, worker: str, host: str, caps: Mapping[str, float], sizes: MessageBytes) -> dict[str, float]:
    """The costs of one pair, by field of ``PairCosts``. No cap holds a loopback."""
    up, down = links.get((worker, host)), links.get((host, worker))
    cap = math.inf if worker == host else min(caps[worker], caps[host])
    found = dict.fromkeys(PairCosts._fields, 0.0)
    found["weights_s"] = math.inf if up is None else transfer_s(up, sizes.weights, cap)
    found["latency_s"] = math.inf if up is None else transfer_s(up, 0, cap)
    if up is None or down is None:
        return {**found, "up_s": math.inf, "down_s": math.inf}
    up_s, down_s = transfer_s(up, sizes.up, cap), transfer_s(down, sizes.down, cap)
    up_cpu, down_cpu = processor_s(up, sizes.up), processor_s(down, sizes.down)
    error_s = math.hypot(_error(up, sizes.up) * up_s, _error(down, sizes.down) * down_s)
    received_s = _stolen_cpu_s(up_cpu.receive_s, up.receive_stolen_cpu_s, sizes.up)
    order_s = _order_cpu_s(links, host)
    worker_cpu_s = up_cpu.send_s + down_cpu.receive_s + _order_cpu_s(links, worker)
    host_cpu_s = up_cpu.receive_s + down_cpu.send_s + order_s
    host_stolen_cpu_s = received_s + _stolen_cpu_s(down_cpu.send_s, down.send_stolen_cpu_s, sizes.down) + order_s
    if worker == host:  # whose code the worker's part has just brought into the caches
        worker_cpu_s, host_cpu_s = 0.0, worker_cpu_s + host_cpu_s - order_s
        host_stolen_cpu_s = host_cpu_s
        found["order_cpu_s"] = order_s
    return {
        **found,
        "up_s": up_s,
        "down_s": down_s,
        "worker_cpu_s": worker_cpu_s,
        "host_cpu_s": host_cpu_s,
        "host_stolen_cpu_s": host_stolen_cpu_s,
        "send_stolen_cpu_s": _stolen_cpu_s(up_cpu.send_s, up.send_stolen_cpu_s, sizes.up),
        "receive_stolen_cpu_s": received_s,
        "error": error_s / (up_s + down_s),
    }


def _error(link: LinkProfile, message_bytes: int) -> float:
    """The relative standard error of a message's time."""
    return math.hypot(relative_error(link, message_bytes), ERROR if link.tool == ESTIMATED else 0.0)


def _order_cpu_s(links: Links, device: str) -> float:
    """Processor seconds of one end for an order and its answer, whatever else they carry."""
    loopback = links.get((device, device))
    return sum(processor_s(loopback, ORDER_BYTES)) if loopback else 0.0


def _stolen_cpu_s(cpu_s: float, stolen_s_per_byte: float | None, message_bytes: int) -> float:
    """Processor seconds that a message steals from a computation, at least its own."""
    return max(cpu_s, (stolen_s_per_byte or 0.0) * message_bytes)


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
        links = ((ends, link) for ends, link in known(profile).items() if name in ends and len(set(ends)) > 1)
        fastest, asked = max((rate_bytes_per_s(link) for _, link in links), default=math.nan), rate * PAYLOAD
        shown = f"--rate {name}: its links measured {fastest * 8e-6:.3g} Mbit/s at most; "
        if fastest < asked:
            notes.append(shown + "a faster network than that cannot be predicted from this profile")
        elif fastest > FAR_SLOWER * asked:
            slower = f"on a network more than {FAR_SLOWER:g} times slower "
            notes.append(shown + slower + "each byte costs more processor time, which only a profile tells")
    return notes
