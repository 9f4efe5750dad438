"""Real look-ups on this machine, in the agent's place."""

from pathlib import Path
from typing import Any

import pytest

from backends.agent.verbs import ORDERS
from planner.agents.addresses import data_addresses, try_addresses
from planner.errors import DeviceLostError, FleetError
from planner.fleet.device import Device, SshLogin
from profilers import addresses_and_ports
from profilers.interface_addresses import InterfaceAddress


class Here:
    """This machine as the device behind an agent."""

    def call(self, order: Any, timeout_s: float | None = None) -> Any:
        return ORDERS[type(order)](None, order)


class Lost:
    """An agent that is gone."""

    def call(self, order: Any, timeout_s: float | None = None) -> Any:
        raise DeviceLostError("lost: the agent ended")


def found(*devices: Device) -> dict[str, str]:
    return data_addresses({d.name: d for d in devices}, {d.name: Here() for d in devices})


@pytest.fixture
def no_ssh_config(tmp_path: Path) -> Path:
    path = tmp_path / "config"
    path.write_text("Host board\n  HostName 192.0.2.7\n")
    return path


def test_what_the_fleet_file_says_comes_first() -> None:
    declared = Device(name="a", ssh=SshLogin("elsewhere"), data_address="192.0.2.1", data_interface="lo")
    assert found(declared) == {"a": "192.0.2.1"}


def test_an_interface_without_an_address_is_named() -> None:
    with pytest.raises(
        FleetError, match=r'a: data_interface "nope0" has no address that others reach; see `ip address`'
    ):
        found(Device(name="a", data_interface="nope0"))


def test_then_the_host_as_the_ssh_configuration_knows_it(no_ssh_config: Path) -> None:
    assert found(Device(name="a", ssh=SshLogin("board", ssh_config=no_ssh_config))) == {"a": "192.0.2.7"}


def test_an_address_that_means_something_on_its_link_only_is_replaced(
    monkeypatch: pytest.MonkeyPatch, no_ssh_config: Path
) -> None:
    listed = [
        InterfaceAddress("eth1", "fe80::9", False, is_link_local=True),
        InterfaceAddress("eth1", "10.0.0.9", False, is_link_local=False),
        InterfaceAddress("wlan0", "192.168.0.9", False, is_link_local=False),
    ]
    monkeypatch.setattr(addresses_and_ports, "interface_addresses", lambda: listed)
    no_ssh_config.write_text("Host board\n  HostName fe80::9%%lo\n")
    board = Device(name="a", ssh=SshLogin("board", ssh_config=no_ssh_config))
    assert found(board) == {"a": "10.0.0.9"}
    del listed[1]
    with pytest.raises(FleetError, match='a: the interface of "fe80::9" has no address that others reach'):
        found(board)


def test_this_machine_is_where_it_would_send_from_to_the_others() -> None:
    both = found(Device(name="here"), Device(name="there", ssh=SshLogin("x"), data_address="127.0.0.1"))
    assert both == {"here": "127.0.0.1", "there": "127.0.0.1"}


def test_a_device_without_an_address_leaves_the_others_theirs() -> None:
    devices = (Device(name="here"), Device(name="lost"), Device(name="a", data_interface="nope0"),
               Device(name="there", ssh=SshLogin("x"), data_address="127.0.0.1"))  # fmt: skip
    agents = {device.name: Lost() if device.name == "lost" else Here() for device in devices}
    addresses, failed = try_addresses({device.name: device for device in devices}, agents)
    assert addresses == {"here": "127.0.0.1", "there": "127.0.0.1"}
    assert {name: type(error) for name, error in failed.items()} == {"a": FleetError, "lost": DeviceLostError}


def test_where_nothing_leads_there_is_no_address() -> None:
    with pytest.raises(OSError, match="."):
        addresses_and_ports.address_towards(None, "no-such-host.invalid")
