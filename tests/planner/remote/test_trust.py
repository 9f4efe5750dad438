"""Reading a host's key and storing it."""

import stat
from collections.abc import Callable
from pathlib import Path

import paramiko
import pytest

from planner.errors import HostKeyError, RemoteError
from planner.fleet.device import Device
from planner.remote import trust
from planner.remote.ssh import SshRemote
from planner.remote.ssh_config import SshTarget
from tests.sshserver import new_key, ssh_server

DEVICE = Device(name="tx2", host="tx2")
MakeTarget = Callable[..., SshTarget]


def a_key(path: Path, key: paramiko.PKey | None = None) -> trust.HostKey:
    key = key or new_key()
    return trust.HostKey("tx2", "[10.0.0.3]:2222", key.get_name(), key.get_base64(), path)


def test_a_key_is_read_without_a_login_and_stored_key_lets_the_device_in(
    client_key: paramiko.PKey, target_of: MakeTarget, known_hosts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ssh_server(client_key) as server:
        target = target_of(server, known="")
        monkeypatch.setattr(trust, "resolve", lambda device: target)
        key = trust.fetch_key(DEVICE)
        assert key.name == f"[127.0.0.1]:{server.port}"
        assert key.fingerprint == server.host_keys[0].fingerprint
        assert (server.connects, server.logins) == (1, 0)
        assert trust.store(key)
        assert known_hosts.read_text() == server.known_line()
        SshRemote("tx2", target).close()


def test_an_unknown_jump_host_comes_first(
    client_key: paramiko.PKey, target_of: MakeTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ssh_server(client_key) as jump, ssh_server(client_key) as last:
        target = target_of(last, known="", jumps=(target_of(jump, known=""),))
        monkeypatch.setattr(trust, "resolve", lambda device: target)
        for server in (jump, last):
            key = trust.fetch_key(DEVICE)
            assert key.name == server.known_name
            trust.store(key)
        SshRemote("tx2", target).close()


def test_this_machine_has_no_key_to_trust() -> None:
    with pytest.raises(RemoteError, match="here: is this machine itself"):
        trust.fetch_key(Device(name="here"))


def test_where_no_file_may_hold_a_key_that_is_said(
    client_key: paramiko.PKey, target_of: MakeTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ssh_server(client_key) as server:
        target = target_of(server, known_hosts=())
        monkeypatch.setattr(trust, "resolve", lambda device: target)
        for attempt in (lambda: trust.fetch_key(DEVICE), lambda: SshRemote("tx2", target)):
            with pytest.raises(HostKeyError, match="tx2: .* UserKnownHostsFile and GlobalKnownHostsFile are both none"):
                attempt()


def test_a_key_is_not_said_to_be_stored_where_it_is_lost() -> None:
    with pytest.raises(HostKeyError, match="tx2: /dev/null keeps no key; name a file as UserKnownHostsFile"):
        trust.store(a_key(Path("/dev/null")))


def test_the_file_and_its_folder_are_made_for_the_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "home" / ".ssh" / "known_hosts"
    assert trust.store(a_key(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_key_is_appended_to_what_is_there_even_without_a_last_newline(tmp_path: Path) -> None:
    path = tmp_path / "known_hosts"
    path.write_text("# mine")
    key = a_key(path)
    assert trust.store(key)
    assert path.read_text() == f"# mine\n{key.name} {key.type} {key.base64}\n"


def test_a_key_is_stored_once(tmp_path: Path) -> None:
    key = a_key(tmp_path / "known_hosts")
    assert trust.store(key)
    assert not trust.store(key)
    assert len(key.path.read_text().splitlines()) == 1


def test_another_file_may_be_named(tmp_path: Path) -> None:
    assert trust.store(a_key(tmp_path / "one"), tmp_path / "two")
    assert [path.name for path in tmp_path.iterdir()] == ["two"]


def test_a_different_key_is_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "known_hosts"
    old, new = a_key(path), a_key(path)
    trust.store(old)
    with pytest.raises(HostKeyError) as caught:
        trust.store(new)
    assert f"{path}:1 holds" in str(caught.value)
    assert f"ssh-keygen -R '[10.0.0.3]:2222' -f {path}" in str(caught.value)
    assert new.base64 not in path.read_text()
