"""A lab's network connects namespaces to one switch in its own, by ip(8) and as root."""

import ipaddress
import json
from collections.abc import Iterable
from typing import Any

from .errors import LabError
from .programs import run_program

BRIDGE = "bridge"
#: Name of a device's only interface, inside the device.
PORT = "eth0"
PREFIX_BITS = 24
#: Prefixes shorter than this do not conflict with a lab's network, which is more specific.
_WIDE_BITS = 16


def add_namespace(namespace: str) -> None:
    """Create a namespace with its loopback up, unless it exists."""
    if namespace not in namespaces():
        ip("netns", "add", namespace)
    ip("-n", namespace, "link", "set", "lo", "up")


def remove_namespace(namespace: str) -> None:
    if namespace in namespaces():
        ip("netns", "del", namespace)


def namespaces() -> list[str]:
    """Names of all network namespaces of this machine."""
    return [entry["name"] for entry in _json("netns", "list")]


def add_switch(namespace: str) -> None:
    """Create a namespace with a bridge; existing parts are kept."""
    add_namespace(namespace)
    if BRIDGE not in _links(namespace):
        ip("-n", namespace, "link", "add", BRIDGE, "type", "bridge")
    ip("-n", namespace, "link", "set", BRIDGE, "up")


def plug(switch: str, port: str, namespace: str | None, address: str, interface: str = PORT) -> None:
    """Connect a new port of the switch to a new interface of a namespace; None: of this machine."""
    there = _inside(namespace)
    ip(*there, "link", "add", interface, "type", "veth", "peer", "name", port, "netns", switch)
    network = ipaddress.ip_interface(f"{address}/{PREFIX_BITS}")
    # The same address after a rebuild, because others have it in their ARP caches.
    ip(*there, "link", "set", interface, "address", f"02:00:{network.ip.packed.hex(':')}")
    ip(*there, "address", "add", str(network), "dev", interface)
    ip(*there, "link", "set", interface, "up")
    # A namespace inherits the machine's congestion control; edge devices use the kernel's default.
    route = (str(network.network), "dev", interface, "src", address, "congctl", "cubic")
    ip(*there, "route", "change", *route)
    ip("-n", switch, "link", "set", port, "master", BRIDGE, "up")


def unplug(namespace: str | None, interface: str) -> None:
    """Remove the cable of an interface, or what is left of it, from a namespace or this machine."""
    if has_interface(namespace, interface):
        ip(*_inside(namespace), "link", "del", interface)


def has_port(switch: str, port: str) -> bool:
    """Whether the switch has that port with both ends of its cable, connected or not."""
    return _links(switch).get(port, {}).get("master") == BRIDGE


def has_interface(namespace: str | None, interface: str) -> bool:
    return interface in _links(namespace)


def connect(switch: str, port: str, up: bool) -> None:
    """Connect or disconnect a cable; the device keeps its address and its routes."""
    ip("-n", switch, "link", "set", port, "up" if up else "down")


def connected(switch: str) -> set[str]:
    """Ports of the switch whose cable is connected."""
    return {port for port, link in _links(switch).items() if "UP" in link["flags"]}


def free_network(networks: Iterable[ipaddress.IPv4Network]) -> ipaddress.IPv4Network:
    """The first of these networks to which this machine has no route. Raises LabError."""
    routes = [entry["dst"] for entry in _json("-4", "route", "show", "table", "all")]
    taken = [ipaddress.ip_network(route) for route in routes if route[0].isdigit()]
    narrow = [network for network in taken if network.prefixlen >= _WIDE_BITS]
    for network in networks:
        if not any(network.overlaps(other) for other in narrow):
            return network
    raise LabError("no network for a lab is free; take one down with `python -m benchmarks.lab down`")


def ip(*arguments: str) -> None:
    """Run ip(8). Raises LabError with its output."""
    run_program("ip", *arguments)


def _inside(namespace: str | None) -> tuple[str, ...]:
    """The options with which ip(8) works in a namespace; None: on this machine."""
    return () if namespace is None else ("-n", namespace)


def _links(namespace: str | None) -> dict[str, dict[str, Any]]:
    """ip(8)'s description of every interface, by name."""
    return {link["ifname"]: link for link in _json(*_inside(namespace), "link", "show")}


def _json(*arguments: str) -> list[Any]:
    found: list[Any] = json.loads(run_program("ip", "-j", *arguments) or "[]")
    return [entry for entry in found if entry]
