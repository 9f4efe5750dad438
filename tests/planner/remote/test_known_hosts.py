"""known_hosts files, as sshd(8) describes them."""

import base64
import hashlib
import hmac
import stat
import subprocess
from pathlib import Path
from shutil import which

import paramiko
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import HostKeyError
from planner.remote.known_hosts import (
    ChangedHostKeyError,
    HostKey,
    UnknownHostKeyError,
    known_keys,
    matches,
    replace,
    store,
    verify,
)
from tests.sshserver import new_key

KEY = new_key()
OTHER = new_key()


def shown(key: paramiko.PKey = KEY, path: Path = Path("known_hosts")) -> HostKey:
    return HostKey("tx2", "[10.0.0.3]:2222", key.get_name(), key.get_base64(), (path,))


def line(names: str, key: paramiko.PKey = KEY, marker: str = "") -> str:
    return f"{marker} {names} {key.get_name()} {key.get_base64()} a comment\n".lstrip()


def hashed(name: str) -> str:
    digest = hmac.new(b"salt" * 5, name.encode(), hashlib.sha1).digest()
    return f"|1|{base64.b64encode(b'salt' * 5).decode()}|{base64.b64encode(digest).decode()}"


@pytest.mark.parametrize(
    ("names", "name", "expected"),
    [
        (["tx2"], "tx2", True),
        (["TX2"], "tx2", True),
        (["tx2", "10.0.0.3"], "10.0.0.3", True),
        (["10.0.0.3"], "10.0.0.30", False),
        (["[10.0.0.3]:2222"], "[10.0.0.3]:2222", True),
        (["[10.0.0.3]:2222"], "10.0.0.3", False),
        (["10.0.0.?"], "10.0.0.3", True),
        (["*.lab", "!door.lab"], "tx2.lab", True),
        (["*.lab", "!door.lab"], "door.lab", False),
        (["a.b"], "axb", False),
        ([hashed("tx2")], "tx2", True),
        ([hashed("tx2")], "tx1", False),
        ([hashed("[tx2]:2222")], "[tx2]:2222", True),
        (["|1|not base64"], "tx2", False),
    ],
)
def test_which_lines_mean_a_host(names: list[str], name: str, expected: bool) -> None:
    assert matches(names, name) is expected


@given(st.text(alphabet="abc.:[]*?|!-", min_size=1).filter(lambda name: name[0] not in "!|"))
def test_a_name_means_itself_and_so_does_its_hash(name: str) -> None:
    assert matches([name], name)
    assert matches([hashed(name)], name)


def test_lines_are_found_with_their_numbers_and_what_is_no_key_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "known_hosts"
    path.write_text("# tx2\n\ntx2 broken\ntx2 ssh-rsa ???\n" + line("tx1") + line("tx2,10.0.0.3") + line("*", OTHER))
    found = known_keys("tx2", [tmp_path / "absent", path])
    assert [(key.path, key.line, key.base64) for key in found] == [
        (path, 6, KEY.get_base64()),
        (path, 7, OTHER.get_base64()),
    ]


def verify_against(text: str, tmp_path: Path) -> None:
    """Verify the host's key where known_hosts holds this text."""
    path = tmp_path / "known_hosts"
    path.write_text(text)
    verify(shown(KEY, path))


def test_the_key_on_record_passes_where_it_is_one_of_several_and_no_other_does(tmp_path: Path) -> None:
    other = line("[10.0.0.3]:2222", OTHER)
    verify_against(other + line("[10.0.0.3]:*"), tmp_path)
    with pytest.raises(ChangedHostKeyError):
        verify_against(other, tmp_path)


def test_a_folder_in_the_place_of_a_file_holds_no_key(tmp_path: Path) -> None:
    """As one that a container was to be given, and that was not there."""
    assert known_keys("10.0.0.3", [tmp_path]) == []


def test_no_key_is_unknown_and_a_certificate_authority_is_no_key(tmp_path: Path) -> None:
    with pytest.raises(UnknownHostKeyError) as caught:
        verify_against(line("10.0.0.4") + line("[10.0.0.3]:2222", KEY, "@cert-authority"), tmp_path)
    assert caught.value.host_key.fingerprint == KEY.fingerprint


def test_a_key_of_the_host_at_any_port_passes_where_this_port_has_none(tmp_path: Path) -> None:
    verify_against(line("10.0.0.3"), tmp_path)
    with pytest.raises(UnknownHostKeyError):
        verify_against(line("10.0.0.3", OTHER), tmp_path)
    with pytest.raises(ChangedHostKeyError):
        verify_against(line("10.0.0.3") + line("[10.0.0.3]:2222", OTHER), tmp_path)
    with pytest.raises(HostKeyError, match="revokes"):
        verify_against(line("10.0.0.3") + line("10.0.0.3", KEY, "@revoked"), tmp_path)


def test_another_key_is_a_change(tmp_path: Path) -> None:
    with pytest.raises(ChangedHostKeyError, match="run `planner trust tx2`") as caught:
        verify_against(line(hashed("[10.0.0.3]:2222"), OTHER), tmp_path)
    assert caught.value.host_key.fingerprint == KEY.fingerprint
    assert caught.value.recorded.fingerprint == OTHER.fingerprint
    assert f"{tmp_path / 'known_hosts'}:1 holds" in str(caught.value)


def test_a_revoked_key_is_refused_even_where_it_is_known(tmp_path: Path) -> None:
    with pytest.raises(HostKeyError, match=r"known_hosts:2 revokes"):
        verify_against(line("[10.0.0.3]:2222") + line("*", KEY, "@revoked"), tmp_path)


@pytest.mark.skipif(which("ssh-keygen") is None, reason="ssh-keygen not installed")
def test_what_openssh_hashes_and_prints_is_understood(tmp_path: Path) -> None:
    path = tmp_path / "known_hosts"
    path.write_text(line("[10.0.0.3]:2222"))
    subprocess.run(["ssh-keygen", "-H", "-f", path], check=True, capture_output=True)
    assert path.read_text().startswith("|1|")
    [found] = known_keys("[10.0.0.3]:2222", [path])
    printed = subprocess.run(["ssh-keygen", "-l", "-f", path], check=True, capture_output=True, text=True)
    assert found.base64 == KEY.get_base64()
    assert shown().fingerprint in printed.stdout


# -- storing a key ---------------------------------------------------------------------------------


def a_key(path: Path, key: paramiko.PKey | None = None) -> HostKey:
    key = key or new_key()
    return HostKey("tx2", "[10.0.0.3]:2222", key.get_name(), key.get_base64(), (path,))


def test_a_key_is_not_said_to_be_stored_where_it_is_lost() -> None:
    with pytest.raises(HostKeyError, match="tx2: /dev/null keeps no key; name a file as UserKnownHostsFile"):
        store(a_key(Path("/dev/null")))


def test_the_file_and_its_folder_are_made_for_the_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "home" / ".ssh" / "known_hosts"
    store(a_key(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_key_is_appended_to_what_is_there_even_without_a_last_newline(tmp_path: Path) -> None:
    path = tmp_path / "known_hosts"
    path.write_text("# mine")
    key = a_key(path)
    store(key)
    assert path.read_text() == f"# mine\n{key.name} {key.type} {key.base64}\n"


# -- a changed key ---------------------------------------------------------------------------------


def recorded(names: str, key: HostKey) -> str:
    return f"{names} {key.type} {key.base64}"


def known(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{each}\n" for each in lines))
    return path


def test_a_changed_key_replaces_all_on_record_for_the_host_and_no_others(tmp_path: Path) -> None:
    path = tmp_path / "known_hosts"
    old, older, other, new = (a_key(path) for _ in range(4))
    known(path, "# mine", recorded(old.name, old), recorded("tx1", other), recorded(f"[tx2]:2222,{old.name}", older))
    replace(new)
    verify(new)
    assert path.read_text().splitlines() == [
        "# mine", recorded("tx1", other), recorded("[tx2]:2222", older), recorded(new.name, new)
    ]  # fmt: skip


def test_a_file_whose_key_is_replaced_keeps_its_rights_and_stays_a_link(tmp_path: Path) -> None:
    file, link = tmp_path / "real", tmp_path / "known_hosts"
    old, new = a_key(link), a_key(link)
    known(file, recorded(old.name, old)).chmod(0o640)
    link.symlink_to(file)
    replace(new)
    assert link.is_symlink()
    assert file.read_text().splitlines() == [recorded(new.name, new)]
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_a_key_on_record_in_another_file_is_replaced_there(tmp_path: Path) -> None:
    first, second = tmp_path / "known_hosts", tmp_path / "known_hosts2"
    old, new = a_key(first), a_key(first)._replace(files=(first, second))
    known(second, recorded(old.name, old))
    replace(new)
    assert (first.read_text(), second.read_text()) == (recorded(new.name, new) + "\n", "")


def test_a_line_that_speaks_of_other_hosts_by_a_pattern_is_left_to_the_operator(tmp_path: Path) -> None:
    path = tmp_path / "known_hosts"
    old, new = a_key(path), a_key(path)
    before = known(path, recorded("[10.0.0.*]:2222", old)).read_text()
    with pytest.raises(HostKeyError, match="known_hosts:1 holds a key for .* by hand"):
        replace(new)
    assert path.read_text() == before


def test_a_key_revoked_stays_so_when_another_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "known_hosts"
    revoked, old, new = (a_key(path) for _ in range(3))
    known(path, f"@revoked {recorded('*', revoked)}", recorded(old.name, old))
    replace(new)
    assert path.read_text().splitlines() == [f"@revoked {recorded('*', revoked)}", recorded(new.name, new)]
