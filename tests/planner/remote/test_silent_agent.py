"""An SSH agent that takes a question and never answers holds up no login for ever."""

import itertools
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import paramiko
import pytest
from paramiko import auth_handler

from planner.errors import LoginError
from planner.remote import identities
from planner.remote.ssh import SshRemote
from planner.remote.ssh_config import SshTarget
from tests.running import HANG_S
from tests.sshserver import Faults, ssh_server

MakeTarget = Callable[..., SshTarget]
KEYS_ASKED, KEYS, SIGNATURE_ASKED = 11, 12, 13


def packed(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


@contextmanager
def agent(path: Path, *keys: paramiko.PKey) -> Iterator[threading.Event]:
    """An agent that tells its keys, if it has any, and signs nothing; when it was asked to."""
    asked = threading.Event()

    def serve(link: socket.socket) -> None:
        with link, link.makefile("rb") as stream:
            while header := stream.read(4):
                question = stream.read(*struct.unpack(">I", header))[0]
                if question == KEYS_ASKED and keys:
                    listed = b"".join(packed(key.asbytes()) + packed(b"held") for key in keys)
                    link.sendall(packed(bytes([KEYS]) + struct.pack(">I", len(keys)) + listed))
                elif question == SIGNATURE_ASKED:
                    asked.set()

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        thread = threading.Thread(target=lambda: serve(listener.accept()[0]), daemon=True)
        thread.start()
        yield asked
        thread.join(HANG_S)
        assert not thread.is_alive(), "the agent's connection is still open"


def test_keys_of_files_are_tried_without_one_that_tells_no_keys(
    client_key: paramiko.PKey, target_of: MakeTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identities, "ANSWER_S", 0.1)
    path = tmp_path / "agent"
    with agent(path), ssh_server(client_key) as server:
        SshRemote("tx2", target_of(server, agent=path)).close()
    path.unlink()
    refusing = ssh_server(client_key, Faults(refuse_login=True))
    silent = rf"the SSH agent {path} does not answer within 0\.1 s: restart it"
    with agent(path), refusing as server, pytest.raises(LoginError, match=silent):
        SshRemote("tx2", target_of(server, agent=path))


def test_one_that_signs_nothing_is_waited_for_as_long_as_a_login_may_take(
    client_key: paramiko.PKey, target_of: MakeTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, seconds = tmp_path / "agent", itertools.count(step=60)
    with agent(path, client_key) as asked, ssh_server(client_key) as server:
        clock = SimpleNamespace(time=lambda: next(seconds) if asked.is_set() else 0)
        monkeypatch.setattr(auth_handler, "time", clock)
        target = target_of(server, agent=path, key_files=(), identities_only=False)
        with pytest.raises(
            LoginError, match="nothing was heard of the login by the agent's .* within 30 s; if the SSH"
        ):
            SshRemote("tx2", target, timeout_s=30)
