"""Link costs are those of an exchange on every pair of devices, and the capacity of a link."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from planner.arrays import Bools, Floats
from planner.predict.transfer_time import processor_s, rate_bytes_per_s, relative_error, transfer_s
from planner.profile.file import DeviceProfile, Profile
from profilers.records import LinkProfile

Links = Mapping[tuple[str, str], LinkProfile]


class Exchange(NamedTuple):
    """One exchange of a worker with a host; fields as in ``PairCosts``."""

    up_s: float
    down_s: float
    worker_cpu_s: float
    host_cpu_s: float
    host_stolen_cpu_s: float
    send_stolen_cpu_s: float
    receive_stolen_cpu_s: float
    error: float

    def co_located(self) -> "Exchange":
        """The same for a worker on the host itself: all processor seconds are the host's."""
        cpu_s = self.worker_cpu_s + self.host_cpu_s
        return self._replace(worker_cpu_s=0.0, host_cpu_s=cpu_s, host_stolen_cpu_s=cpu_s)


UNMEASURED = Exchange(math.inf, math.inf, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


class PairCosts(NamedTuple):
    """Uncontended costs of an exchange, (N, N) [worker, host] each.

    The diagonal is a co-located worker.

    up_s, down_s: seconds to the host and back, infinite where the link was not measured.
    worker_cpu_s, host_cpu_s: processor seconds at each end; all the host's on the diagonal.
    host_stolen_cpu_s: processor seconds that a computation on the host lacks during an exchange.
    send_stolen_cpu_s, receive_stolen_cpu_s: those that computations on the worker and on the host
        lack while a message goes up.
    error: relative standard error of up_s + down_s.
    weights_s: seconds of a message of all weights, one way, [from, to].
    latency_s: seconds of an empty message, one way, [from, to].
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

    @property
    def reachable(self) -> Bools:
        """(N, N): worker i has measured links with host k both ways."""
        return np.isfinite(self.up_s + self.down_s)


#: Payload share of Ethernet's line rate at 1500-byte packets: what is left of a rate the operator
#: names.
PAYLOAD = 0.941
#: A host's link shows no contention when all peers at once get this share of what each gets alone.
UNCONTENDED = 0.95
#: From this factor on the packets of a what-if arrive one by one where those measured arrived in
#: bursts: a byte that cost a processor 1 to 1.6 ns at 1000 Mbit/s cost 4 to 16 ns at 40 to 100
#: (docs/results.md).
FAR_SLOWER = 4.0


def measured(profile: Profile) -> Links:
    """The links that were measured, by source and target."""
    return {(link.source, link.target): link for link in profile.links if link.bytes_per_s.values}


def cap_bytes_per_s(device: DeviceProfile, what_if: float | None) -> float:
    """Bytes/s that a network is held to: the rate of a what-if, else the declared, less framing."""
    if what_if is not None:
        return what_if * PAYLOAD
    declared = device.device.get("rate_bytes_per_s")
    return math.inf if declared is None else float(declared) * PAYLOAD


def of_pairs(
    profile: Profile,
    names: Sequence[str],
    caps: Mapping[str, float],
    up_bytes: int,
    down_bytes: int,
    weights_bytes: int,
) -> PairCosts:
    """Costs of all pairs of the named devices.

    caps: bytes/s by device; up_bytes, down_bytes: of an exchange; weights_bytes: of all weights.
    """
    links = measured(profile)
    exchanges = [[_exchange(links, worker, host, caps, up_bytes, down_bytes) for host in names] for worker in names]

    def part(name: str) -> Floats:
        return np.array([[getattr(each, name) for each in row] for row in exchanges])

    return PairCosts(
        **{name: part(name) for name in Exchange._fields},
        weights_s=_message_s(links, names, caps, weights_bytes),
        latency_s=_message_s(links, names, caps, 0),
    )


def _exchange(
    links: Links, worker: str, host: str, caps: Mapping[str, float], up_bytes: int, down_bytes: int
) -> Exchange:
    up, down = links.get((worker, host)), links.get((host, worker))
    if up is None or down is None:
        return UNMEASURED
    cap = _cap(worker, host, caps)
    up_s, down_s = transfer_s(up, up_bytes, cap), transfer_s(down, down_bytes, cap)
    up_cpu, down_cpu = processor_s(up, up_bytes), processor_s(down, down_bytes)
    error_s = math.hypot(relative_error(up, up_bytes) * up_s, relative_error(down, down_bytes) * down_s)
    received_s = _stolen_cpu_s(up_cpu.receive_s, up.receive_stolen_cpu_s, up_bytes)
    returned_s = _stolen_cpu_s(down_cpu.send_s, down.send_stolen_cpu_s, down_bytes)
    found = Exchange(
        up_s=up_s,
        down_s=down_s,
        worker_cpu_s=up_cpu.send_s + down_cpu.receive_s,
        host_cpu_s=up_cpu.receive_s + down_cpu.send_s,
        host_stolen_cpu_s=received_s + returned_s,
        send_stolen_cpu_s=_stolen_cpu_s(up_cpu.send_s, up.send_stolen_cpu_s, up_bytes),
        receive_stolen_cpu_s=received_s,
        error=error_s / (up_s + down_s),
    )
    return found.co_located() if worker == host else found


def _message_s(links: Links, names: Sequence[str], caps: Mapping[str, float], message_bytes: int) -> Floats:
    """(N, N) [from, to]: seconds of a message, infinite where a link was not measured."""

    def seconds(source: str, target: str) -> float:
        link = links.get((source, target))
        return math.inf if link is None else transfer_s(link, message_bytes, _cap(source, target, caps))

    return np.array([[seconds(source, target) for target in names] for source in names])


def _cap(one: str, other: str, caps: Mapping[str, float]) -> float:
    """Bytes/s that the slower network of two devices is held to; a loopback is not held."""
    return math.inf if one == other else min(caps[one], caps[other])


def _stolen_cpu_s(cpu_s: float, stolen_s_per_byte: float | None, message_bytes: int) -> float:
    """Processor seconds that a message steals from a computation, at least its own."""
    return max(cpu_s, (stolen_s_per_byte or 0.0) * message_bytes)


def capacity_bytes_per_s(profile: Profile, host: str, direction: str, cap_bytes_per_s: float) -> float:
    """Bytes/s of all peers at once into (``in``) or out of (``out``) a host, no more than its cap.

    The cap, which may be infinite, where they do not slow one another; the best pair's rate where
    no incast was measured. Peers count as they were measured, also those that are no candidates now
    or that a what-if slows: the capacity of the host's link does not depend on them.
    """
    links, alone = measured(profile), {}
    for peer in profile.devices:
        link = links.get((peer, host) if direction == "in" else (host, peer))
        if link is not None and peer != host:
            alone[peer] = rate_bytes_per_s(link)
    if not alone:
        return cap_bytes_per_s
    for incast in profile.incasts:
        peers = [peer for peer in incast.bytes_per_s if peer in alone]
        if (incast.host, incast.direction) == (host, direction) and len(peers) > 1:
            together = sum(incast.bytes_per_s[peer] for peer in peers)
            contended = together < UNCONTENDED * sum(alone[peer] for peer in peers)
            return min(together, cap_bytes_per_s) if contended else cap_bytes_per_s
    return min(max(alone.values()), cap_bytes_per_s)


def unlike_measured(profile: Profile, rates: Mapping[str, float]) -> list[str]:
    """Notes on what-if rates that are faster than measured, or far slower."""
    notes = []
    for name, rate in rates.items():
        own = [
            rate_bytes_per_s(link) for ends, link in measured(profile).items() if name in ends and len(set(ends)) > 1
        ]
        if not own:
            continue
        fastest, asked = max(own), rate * PAYLOAD
        shown = f"--rate {name}: its links measured {fastest * 8e-6:.3g} Mbit/s at most; "
        if fastest < asked:
            notes.append(shown + "a faster network than that cannot be predicted from this profile")
        elif fastest > FAR_SLOWER * asked:
            slower = f"on a network more than {FAR_SLOWER:g} times slower "
            notes.append(shown + slower + "each byte costs more processor time, which only a profile tells")
    return notes
