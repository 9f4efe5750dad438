"""Every device gets the address at which others reach it on the data plane."""

import ipaddress
import socket
from collections.abc import Mapping

from backends.protocol.orders import FindAddressTowards, FindInterfaceAddress
from planner.agents.client import AgentClient
from planner.errors import FleetError, PlannerError
from planner.fleet.device import Device
from planner.remote.ssh_config import resolve

LOOPBACK = "127.0.0.1"
ADDRESS_TIMEOUT_S = 10.0


def data_addresses(devices: Mapping[str, Device], agents: Mapping[str, AgentClient]) -> dict[str, str]:
    """The address other devices connect to, by name.

    In this order: what the fleet file says; the address of the interface it names; the SSH host.
    This machine's own is the one it would use towards the first of the others, or loopback where
    all are local. Raises FleetError where a device's interface has no address, AgentError where a
    name is not resolved.
    """
    found, failed = try_addresses(devices, agents)
    for error in failed.values():
        raise error
    return found


def try_addresses(
    devices: Mapping[str, Device], agents: Mapping[str, AgentClient]
) -> tuple[dict[str, str], dict[str, PlannerError]]:
    """As ``data_addresses``, and the errors of the devices that have no address."""
    found: dict[str, str] = {}
    failed: dict[str, PlannerError] = {}
    for name in sorted(devices, key=lambda name: _depends_on_others(devices[name])):
        try:
            found[name] = _address(devices[name], agents[name], next(iter(found.values()), LOOPBACK))
        except PlannerError as error:
            failed[name] = error
    return found, failed


def _depends_on_others(device: Device) -> bool:
    return device.local and device.data_address is None and device.data_interface is None


def _address(device: Device, agent: AgentClient, other: str) -> str:
    """other: that of another device."""
    if device.data_address is not None:
        return device.data_address
    if device.data_interface is not None:
        return _of_interface(device, agent, device.data_interface, "data_interface")
    if device.local:
        towards: str = agent.call(FindAddressTowards(other), ADDRESS_TIMEOUT_S)
        return towards
    host = _numeric(resolve(device).hostname)
    if _is_link_local(host):  # other devices may have another name for the interface that it names
        return _of_interface(device, agent, host.partition("%")[0], "the interface of")
    return host


def _of_interface(device: Device, agent: AgentClient, interface: str, what: str) -> str:
    address: str | None = agent.call(FindInterfaceAddress(interface), ADDRESS_TIMEOUT_S)
    if address is None:
        where = f'{device.name}: {what} "{interface}"'
        raise FleetError(f"{where} has no address that others reach; see `ip address` there, or set data_address")
    return address


def _is_link_local(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:  # a name that only a jump host knows
        return False
    return address.version == 6 and address.is_link_local


def _numeric(host: str) -> str:
    """The address behind a host name as seen from here: a device itself may take it for loopback.

    A name that only a jump host knows stays as it is.
    """
    try:
        return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError:
        return host
