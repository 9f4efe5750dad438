"""A login verifies host keys on its way; a host's key is fetched without a login."""

from collections.abc import Callable
from pathlib import Path

import paramiko
import pytest

from planner.errors import HostKeyError, LoginError, RemoteError
from planner.fleet.device import Device, SshLogin
from planner.remote import ssh_login
from planner.remote.known_hosts import store
from planner.remote.ssh import SshRemote
from planner.remote.ssh_config import SshTarget
from tests.sshserver import Faults, ssh_server

DEVICE = Device(name="tx2", ssh=SshLogin("tx2"))
MakeTarget = Callable[..., SshTarget]


def test_a_key_is_read_without_a_login_and_stored_key_lets_the_device_in(
    client_key: paramiko.PKey, target_of: MakeTarget, known_hosts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ssh_server(client_key) as server:
        target = target_of(server, known="")
        monkeypatch.setattr(ssh_login, "resolve", lambda device: target)
        key = ssh_login.fetch_host_key(DEVICE)
        assert key.name == f"[127.0.0.1]:{server.port}"
        assert key.fingerprint == server.host_keys[0].fingerprint
        assert (server.connects, server.logins) == (1, 0)
        store(key)
        assert known_hosts.read_text() == server.known_line()
        SshRemote("tx2", target).close()


def test_an_unknown_jump_host_comes_first(
    client_key: paramiko.PKey, target_of: MakeTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ssh_server(client_key) as jump, ssh_server(client_key) as last:
        target = target_of(last, known="", jumps=(target_of(jump, known=""),))
        monkeypatch.setattr(ssh_login, "resolve", lambda device: target)
        for server in (jump, last):
            key = ssh_login.fetch_host_key(DEVICE)
            assert key.name == server.known_name
            store(key)
        SshRemote("tx2", target).close()


def test_behind_a_jump_host_that_refuses_the_login_ssh_itself_may_store_the_key(
    client_key: paramiko.PKey, target_of: MakeTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ssh_server(client_key, Faults(refuse_login=True)) as jump, ssh_server(client_key) as last:
        target = target_of(last, known="", jumps=(target_of(jump),))
        monkeypatch.setattr(ssh_login, "resolve", lambda device: target)
        with pytest.raises(LoginError, match="log in once by ssh, which asks whether to store the key of"):
            ssh_login.fetch_host_key(DEVICE)


def test_this_machine_has_no_key_to_trust() -> None:
    with pytest.raises(RemoteError, match="here: is this machine itself"):
        ssh_login.fetch_host_key(Device(name="here"))


def test_where_no_file_may_hold_a_key_that_is_said(
    client_key: paramiko.PKey, target_of: MakeTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ssh_server(client_key) as server:
        target = target_of(server, known_hosts=())
        monkeypatch.setattr(ssh_login, "resolve", lambda device: target)
        for attempt in (lambda: ssh_login.fetch_host_key(DEVICE), lambda: SshRemote("tx2", target)):
            with pytest.raises(HostKeyError, match="tx2: .* UserKnownHostsFile and GlobalKnownHostsFile are both none"):
                attempt()
