"""Who listens is reached, and who greets wrongly, or not at all, is not."""

import socket
import threading
from collections.abc import Iterator
from queue import Queue

import pytest

from profilers import addresses_and_ports
from profilers.interface_addresses import InterfaceAddress
from tests.running import HANG_S


class Job:
    """An order as an agent carries it out."""

    def __init__(self) -> None:
        self.events: Queue[addresses_and_ports.Listening] = Queue()
        self.emit = self.events.put
        self.stopping = threading.Event()


@pytest.fixture
def listener() -> Iterator[addresses_and_ports.Listening]:
    job = Job()
    thread = threading.Thread(target=addresses_and_ports.await_connections, args=(job, "127.0.0.1"))
    thread.start()
    yield job.events.get(timeout=HANG_S)
    job.stopping.set()
    thread.join(HANG_S)
    assert not thread.is_alive()


def test_a_listening_device_is_reached_by_any_number_of_guests(listener: addresses_and_ports.Listening) -> None:
    assert [addresses_and_ports.probe_port(None, "127.0.0.1", *listener) for _ in range(3)] == [None] * 3


def test_a_guest_that_leaves_at_once_keeps_nobody_out(listener: addresses_and_ports.Listening) -> None:
    socket.create_connection(("127.0.0.1", listener.port)).close()
    assert addresses_and_ports.probe_port(None, "127.0.0.1", *listener) is None


def test_another_machine_at_the_same_address_is_not_the_device(listener: addresses_and_ports.Listening) -> None:
    answer = addresses_and_ports.probe_port(None, "127.0.0.1", listener.port, "0" * 32)
    assert answer == f"127.0.0.1:{listener.port} is another machine"


def test_a_closed_port_says_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert addresses_and_ports.probe_port(None, "127.0.0.1", port, "") == f"127.0.0.1:{port}: Connection refused"


def test_silence_ends_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses_and_ports, "PROBE_LIMIT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        assert (
            addresses_and_ports.probe_port(None, "127.0.0.1", port, "")
            == f"no answer from 127.0.0.1:{port} within 0.2 s"
        )


def test_an_address_of_another_device_cannot_be_listened_on() -> None:
    with pytest.raises(OSError, match=r"cannot listen on 192\.0\.2\.1 .*; set data_address"):
        addresses_and_ports.await_connections(Job(), "192.0.2.1")


def test_a_name_that_nobody_knows_is_told_with_the_remedy() -> None:
    with pytest.raises(OSError, match=r"no address is known here of none\.invalid, .*; correct it in the fleet file"):
        addresses_and_ports.address_towards(None, "none.invalid")


def test_an_address_to_which_no_way_leads_is_told_with_the_remedy() -> None:
    with pytest.raises(
        OSError,
        match=r"no way leads from here to 255\.255\.255\.255, another device's .*; correct it in the fleet file",
    ):
        addresses_and_ports.address_towards(None, "255.255.255.255")  # of all, to which nothing is sent unasked


@pytest.mark.parametrize("address", ["192.0.2.77", "127.0.1.1"])
def test_an_address_of_no_interface_is_named_with_those_there_are(address: str) -> None:
    with pytest.raises(ValueError, match=rf"{address} is the address of no interface here \(lo.*data_interface"):
        addresses_and_ports.interface_with(address)


ADDRESSES = [
    InterfaceAddress("lo", "127.0.0.1", False, False),
    InterfaceAddress("lo", "::1", False, False),
    InterfaceAddress("eth0", "10.0.0.7", True, False),
    InterfaceAddress("eth0", "192.168.1.7", False, False),
    InterfaceAddress("eth0", "fd00::7", False, False),
    InterfaceAddress("eth0", "fe80::7", False, True),
    InterfaceAddress("eth1", "fe80::8", False, True),
    InterfaceAddress("eth1", "fd00::9", True, False),
    InterfaceAddress("eth1", "fd00::8", False, False),
    InterfaceAddress("eth2", "fe80::9", False, True),
    InterfaceAddress("eth3", "169.254.9.9", False, True, "eth3"),
    InterfaceAddress("eth4", "169.254.9.8", False, True, "eth4"),
    InterfaceAddress("eth4", "fd00::4", True, False),
    InterfaceAddress("eth5", "10.0.5.1", False, False, "eth5"),
    InterfaceAddress("eth5", "10.0.5.2", False, False, "eth5:data"),
]


@pytest.fixture
def addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses_and_ports, "interface_addresses", lambda: ADDRESSES)


@pytest.mark.usefixtures("addresses")
@pytest.mark.parametrize("known", ADDRESSES, ids=lambda each: each.address)
def test_each_address_of_an_interface_counts(known: InterfaceAddress) -> None:
    assert addresses_and_ports.interface_with(known.address) == known.interface


@pytest.mark.usefixtures("addresses")
@pytest.mark.parametrize(
    ("interface", "address"),
    [
        ("eth0", "192.168.1.7"), ("eth1", "fd00::8"), ("eth2", None), ("eth9", None), ("eth3", "169.254.9.9"),
        ("eth4", "fd00::4"), ("eth5", "10.0.5.1"), ("eth5:data", "10.0.5.2"), ("eth5:9", None),
        ("fe80::7", "192.168.1.7"), ("10.0.0.7", "10.0.0.7"), ("fd00::7", "fd00::7"),
    ],
)  # fmt: skip
def test_an_interface_is_reached_by_the_best_of_its_addresses(interface: str, address: str | None) -> None:
    assert addresses_and_ports.interface_address(None, interface) == address


def test_a_free_port_is_one_on_which_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    port = addresses_and_ports.free_port()
    with socket.create_server(("127.0.0.1", port)):
        monkeypatch.setattr(addresses_and_ports, "_LISTENING_PORTS", range(port, port + 1))
        with pytest.raises(OSError, match=f"no TCP port from {port} to {port} is free"):
            addresses_and_ports.free_port()
    assert addresses_and_ports.free_port() == port
