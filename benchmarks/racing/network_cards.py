"""The kernel counts the bytes that the network cards of a lab's devices carry."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from lab import network, state
from lab.errors import LabError

from .records import Traffic


class Count(NamedTuple):
    """Bytes of one card since it is there."""

    received: int
    sent: int


class Cards:
    """Counters of each device's network card, from /proc/PID/net/dev of one of its processes."""

    def __init__(self, lab: str, devices: Iterable[str]) -> None:
        where = state.LabNames(lab)
        self._files = {}
        for name in devices:
            pid = (where.of(name) / "sshd.pid").read_text().strip("\0\n ")
            self._files[name] = Path(f"/proc/{pid}/net/dev")
        stands = state.load(where)
        if stands is None:
            raise LabError(f'no lab "{lab}" stands')
        self.rates = {each.device.name: each.device.rate_bytes_per_s for each in stands.devices}

    def read(self) -> dict[str, Count]:
        """Of every device, now."""
        return {name: count(file.read_text(), network.PORT) for name, file in self._files.items()}


class Sample(NamedTuple):
    """Seconds since a run began, payload bytes so far, and the cards' counts then."""

    at_s: float
    payload_bytes: float
    counts: Mapping[str, Count]


def count(text: str, interface: str) -> Count:
    """One interface in /proc/net/dev. Raises LabError where it is not there."""
    for line in text.splitlines():
        name, colon, rest = line.partition(":")
        if colon and name.strip() == interface:
            fields = rest.split()
            return Count(int(fields[0]), int(fields[8]))
    raise LabError(f"no interface {interface} among {text.count(':')}")


def sent(before: Mapping[str, Count], after: Mapping[str, Count]) -> int:
    """Bytes that all cards together sent between two readings."""
    return sum(after[name].sent - before[name].sent for name in after)


def traffic(first: Sample, last: Sample, rates: Mapping[str, float]) -> Traffic:
    """Between two samples. rates: bytes/s of each card's line."""
    seconds = last.at_s - first.at_s
    shares = [
        (getattr(last.counts[name], way) - getattr(first.counts[name], way)) / seconds / rates[name]
        for name in last.counts
        for way in Count._fields
    ]
    payload = last.payload_bytes - first.payload_bytes
    return Traffic(seconds, payload, sent(first.counts, last.counts), max(shares))
