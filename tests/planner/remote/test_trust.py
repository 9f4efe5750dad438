"""Reading a host's key and storing it."""

import stat
from collections.abc import Callable
from pathlib import Path

import paramiko
import pytest

from planner.errors import HostKeyError, RemoteError
from planner.fleet.device import Device
from planner.remote import trust
from planner.remote.known_hosts import HostKey, verify
from planner.remote.ssh import SshRemote
from planner.remote.ssh_config import SshTarget
from tests.sshserver import new_key, ssh_server

DEVICE = Device(name="tx2", host="tx2")
MakeTarget = Callable[..., SshTarget]


def a_key(path: Path, key: paramiko.PKey | None = None) -> HostKey:
    key = key or new_key()
    return HostKey("tx2", "[10.0.0.3]:2222", key.get_name(), key.get_base64(), (path,))


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
        trust.store(key)
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
    trust.store(a_key(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_key_is_appended_to_what_is_there_even_without_a_last_newline(tmp_path: Path) -> None:
    path = tmp_path / "known_hosts"
    path.write_text("# mine")
    key = a_key(path)
    trust.store(key)
    assert path.read_text() == f"# mine\n{key.name} {key.type} {key.base64}\n"


# -- a changed key ---------------------------------------------------------------------------------


def known(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{each}\n" for each in lines))
    return path


def line(names: str, key: HostKey) -> str:
    return f"{names} {key.type} {key.base64}"


def test_a_changed_key_replaces_all_on_record_for_the_host_and_no_others(tmp_path: Path) -> None:
    path = tmp_path / "known_hosts"
    old, older, other, new = (a_key(path) for _ in range(4))
    known(path, "# mine", line(old.name, old), line("tx1", other), line(f"[tx2]:2222,{old.name}", older))
    trust.replace(new)
    verify(new)
    assert path.read_text().splitlines() == [
        "# mine", line("tx1", other), line("[tx2]:2222", older), line(new.name, new)
    ]  # fmt: skip


def test_a_file_whose_key_is_replaced_keeps_its_rights_and_stays_a_link(tmp_path: Path) -> None:
    file, link = tmp_path / "real", tmp_path / "known_hosts"
    old, new = a_key(link), a_key(link)
    known(file, line(old.name, old)).chmod(0o640)
    link.symlink_to(file)
    trust.replace(new)
    assert link.is_symlink()
    assert file.read_text().splitlines() == [line(new.name, new)]
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_a_key_on_record_in_another_file_is_replaced_there(tmp_path: Path) -> None:
    first, second = tmp_path / "known_hosts", tmp_path / "known_hosts2"
    old, new = a_key(first), a_key(first)._replace(files=(first, second))
    known(second, line(old.name, old))
    trust.replace(new)
    assert (first.read_text(), second.read_text()) == (line(new.name, new) + "\n", "")


def test_a_line_that_speaks_of_other_hosts_by_a_pattern_is_left_to_the_operator(tmp_path: Path) -> None:
    path = tmp_path / "known_hosts"
    old, new = a_key(path), a_key(path)
    before = known(path, line("[10.0.0.*]:2222", old)).read_text()
    with pytest.raises(HostKeyError, match="known_hosts:1 holds a key for .* by hand"):
        trust.replace(new)
    assert path.read_text() == before


def test_a_key_revoked_stays_so_when_another_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "known_hosts"
    revoked, old, new = (a_key(path) for _ in range(3))
    known(path, f"@revoked {line('*', revoked)}", line(old.name, old))
    trust.replace(new)
    assert path.read_text().splitlines() == [f"@revoked {line('*', revoked)}", line(new.name, new)]
