"""This view shows the devices of a lab as a table and as JSON."""

from collections.abc import Sequence
from typing import Any

from planner import units
from planner.views.tables import TextTable

from .lab import DeviceStatus


def table(seen: Sequence[DeviceStatus]) -> TextTable:
    """The table of all devices, a row each."""
    columns = ("device", "kind", "address", "rate", "cpus", "memory", "state", "sshd")
    made = TextTable("lab", columns, left=("device", "kind", "state", "sshd"))
    for device, address, condition in seen:
        made.add_row(
            device.name, device.kind, address, units.number(device.rate_bytes_per_s * 8, "bit/s"), f"{device.cpus:g}",
            units.bytes_text(device.memory_bytes), condition.state, "alive" if condition.sshd else "dead",
        )  # fmt: skip
    return made


def to_json(seen: Sequence[DeviceStatus]) -> dict[str, Any]:
    """The JSON of all devices; keys name their units."""
    return {
        "devices": {
            device.name: {
                "kind": device.kind,
                "address": address,
                "rate_bytes_per_s": device.rate_bytes_per_s,
                "cpus": device.cpus,
                "memory_bytes": device.memory_bytes,
                "state": condition.state,
                "sshd": condition.sshd,
            }
            for device, address, condition in seen
        }
    }
