"""What an exchange with a parameter server costs on every pair of devices, and what a host's link holds."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from planner.arrays import Floats
from planner.predict.transfer_time import processor_s, rate_bytes_per_s, relative_error, transfer_s
from planner.profile.file import DeviceProfile, Profile
from profilers.records import LinkProfile

Links = Mapping[tuple[str, str], LinkProfile]

#: Payload share of Ethernet's line rate at 1500-byte packets: what is left of a rate the operator names.
PAYLOAD = 0.941
#: A host's link shows no contention when all peers at once get this share of what each gets alone.
UNCONTENDED = 0.95
#: From here on a what-if's packets come one by one where those measured came in heaps: a byte that cost a processor 1
#: to 1.6 ns at 1000 Mbit/s cost 4 to 16 ns at 40 to 100 (docs/results.md).
FAR_SLOWER = 4.0


def measured(profile: Profile) -> Links:
    """The links that were measured, by source and target."""
    return {(link.source, link.target): link for link in profile.links if link.bytes_per_s.values}


def cap_bytes_per_s(device: DeviceProfile, what_if: float | None) -> float:
    """Bytes/s that a device's network is held to: the what-if's rate, else the declared one, less framing."""
    if what_if is not None:
        return what_if * PAYLOAD
    declared = device.device.get("rate_bytes_per_s")
    return math.inf if declared is None else float(declared) * PAYLOAD


def exchanges(names: Sequence[str], links: Links, caps: Mapping[str, float], up_bytes: int, down_bytes: int) -> Floats:
    """(8, N, N) [worker, host]: up_s, down_s, worker_cpu_s, host_cpu_s, relative error of up and down, host_taken_s;
    and of what goes up alone, send_taken_s of the worker and receive_taken_s of the host.

    links: as ``measured``; caps: bytes/s by device. Infinite seconds where a link was not measured; on the
    diagonal all processor seconds are the host's.
    """
    found = np.full((8, len(names), len(names)), np.inf)
    found[2:] = 0.0
    for i, worker in enumerate(names):
        for k, host in enumerate(names):
            up, down = links.get((worker, host)), links.get((host, worker))
            if up is not None and down is not None:
                cap = math.inf if i == k else min(caps[worker], caps[host])
                found[:, i, k] = _exchange(up, down, cap, up_bytes, down_bytes)
        found[2:4, i, i] = 0.0, found[2:4, i, i].sum()
        found[5, i, i] = found[3, i, i]
    return found


def _exchange(up: LinkProfile, down: LinkProfile, cap: float, up_bytes: int, down_bytes: int) -> tuple[float, ...]:
    up_s, down_s = transfer_s(up, up_bytes, cap), transfer_s(down, down_bytes, cap)
    up_cpu, down_cpu = processor_s(up, up_bytes), processor_s(down, down_bytes)
    error = math.hypot(relative_error(up, up_bytes) * up_s, relative_error(down, down_bytes) * down_s)
    received_s = _taken(up_cpu.receive_s, up.receive_taken_s, up_bytes)
    taken_s = received_s + _taken(down_cpu.send_s, down.send_taken_s, down_bytes)
    worker_cpu_s, host_cpu_s = up_cpu.send_s + down_cpu.receive_s, up_cpu.receive_s + down_cpu.send_s
    return (
        up_s, down_s, worker_cpu_s, host_cpu_s, error / (up_s + down_s), taken_s,
        _taken(up_cpu.send_s, up.send_taken_s, up_bytes), received_s,
    )  # fmt: skip


def between(names: Sequence[str], links: Links, caps: Mapping[str, float], message_bytes: int) -> Floats:
    """(N, N) [from, to]: seconds of a message, infinite where a link was not measured."""
    found = np.full((len(names), len(names)), np.inf)
    for i, source in enumerate(names):
        for k, target in enumerate(names):
            link = links.get((source, target))
            if link is not None:
                cap = math.inf if i == k else min(caps[source], caps[target])
                found[i, k] = transfer_s(link, message_bytes, cap)
    return found


def _taken(cpu_s: float, taken_s_per_byte: float | None, message_bytes: int) -> float:
    """Processor seconds that a message costs a computing host: at least those of the transfer's own thread."""
    return max(cpu_s, (taken_s_per_byte or 0.0) * message_bytes)


def capacity_bytes_per_s(profile: Profile, host: str, direction: str, cap_bytes_per_s: float) -> float:
    """All peers at once into (``in``) or out of (``out``) a host, no more than its cap.

    The cap, which may be infinite, where they do not hinder one another; the best pair's rate where no fan was
    measured. Peers count as they were measured, also those that are no candidates now or that a what-if slows:
    what the host's link holds does not depend on them.
    """
    links, alone = measured(profile), {}
    for peer in profile.devices:
        link = links.get((peer, host) if direction == "in" else (host, peer))
        if link is not None and peer != host:
            alone[peer] = rate_bytes_per_s(link)
    if not alone:
        return cap_bytes_per_s
    for fan in profile.fans:
        peers = [peer for peer in fan.bytes_per_s if peer in alone]
        if (fan.host, fan.direction) == (host, direction) and len(peers) > 1:
            together = sum(fan.bytes_per_s[peer] for peer in peers)
            contended = together < UNCONTENDED * sum(alone[peer] for peer in peers)
            return min(together, cap_bytes_per_s) if contended else cap_bytes_per_s
    return min(max(alone.values()), cap_bytes_per_s)


def unlike_measured(profile: Profile, rates: Mapping[str, float]) -> list[str]:
    """Notes on what-if rates of which a profile cannot tell all: faster than it ever saw, or far slower."""
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
            notes.append(shown + "on a far slower one a byte costs processors more, and only a profile says how much")
    return notes
