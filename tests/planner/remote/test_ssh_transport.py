"""Byte streams to an SSH server; a stream that cannot be opened names its remedy."""

import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from planner.errors import RemoteError
from planner.remote.ssh_config import SshTarget
from planner.remote.ssh_transport import open_link, place
from tests.running import lives, until

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


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a program that greets, whatever its arguments."""
    folder = tmp_path / "my home"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/hello").write_text("#!/bin/sh\necho hello\nexec cat\n")
    (folder / "bin/hello").chmod(0o755)
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.mark.parametrize(
    "command",
    [
        "~/bin/hello 10.0.0.9 22",
        '"$HOME/bin/hello" 10.0.0.9 22',
        """sh -c 'exec "$HOME/bin/hello"' 10.0.0.9""",
        "~/bin/hello 10.0.0.9 22 2>/dev/null",
        "$(echo cat) - && true",
        "~/bin/hello && echo never",
    ],
)
@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/bash", None])
def test_a_proxy_command_is_for_the_users_shell(
    command: str, shell: str | None, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SHELL", raising=False) if shell is None else monkeypatch.setenv("SHELL", shell)
    with ExitStack() as stack:
        link = open_link("tx2", TARGET._replace(proxy_command=command), None, 3.0, stack)
        assert isinstance(link, socket.socket)
        link.sendall(b"hello\n")
        assert link.recv(6) == b"hello\n"


def test_what_a_proxy_command_has_started_ends_with_its_owner() -> None:
    with ExitStack() as stack:
        link = open_link("tx2", TARGET._replace(proxy_command="sh -c 'sleep 600 & echo $!; wait'"), None, 3.0, stack)
        assert isinstance(link, socket.socket)
        child = int(link.recv(20))
    until(lambda: not lives(child), lambda: f"{child} lives")
