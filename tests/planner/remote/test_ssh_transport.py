"""Byte streams to an SSH server; a stream that cannot be opened names its remedy."""

import socket
from contextlib import ExitStack

import pytest

from planner.errors import RemoteError
from planner.remote.ssh_config import SshTarget
from planner.remote.ssh_transport import open_link, place

TARGET = SshTarget("tx2", "10.0.0.3", 2222, "me", (), ())


def test_a_place_is_a_host_and_a_port() -> None:
    assert place(TARGET) == "10.0.0.3:2222"
    assert place(TARGET._replace(hostname="fd00::3")) == "[fd00::3]:2222"


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (socket.gaierror(-2, "Name or service not known"), "the name 10.0.0.3 has no address"),
        (ConnectionRefusedError(), "nothing listens at 10.0.0.3:2222; is sshd running there"),
        (TimeoutError(), "no answer from 10.0.0.3:2222 within 3 s"),
        (OSError(101, "Network is unreachable"), r"10.0.0.3:2222 cannot be reached \(Network is unreachable\)"),
    ],
)
def test_each_failure_to_connect_has_its_remedy(error: OSError, remedy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(socket, "create_connection", fail)
    with ExitStack() as stack, pytest.raises(RemoteError, match=f"tx2: {remedy}"):
        open_link("tx2", TARGET, None, 3.0, stack)


def test_a_proxy_command_is_a_stream_and_ends_with_its_owner() -> None:
    with ExitStack() as stack:
        link = open_link("tx2", TARGET._replace(proxy_command="cat"), None, 3.0, stack)
        assert isinstance(link, socket.socket)
        link.sendall(b"hello")
        assert link.recv(5) == b"hello"
    assert link.fileno() == -1


def test_a_proxy_command_that_does_not_start_is_named() -> None:
    with ExitStack() as stack, pytest.raises(RemoteError, match="ProxyCommand `no-such-program` does not start"):
        open_link("tx2", TARGET._replace(proxy_command="no-such-program"), None, 3.0, stack)
