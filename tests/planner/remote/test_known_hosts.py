"""known_hosts files, as sshd(8) describes them."""

import base64
import hashlib
import hmac
import subprocess
from pathlib import Path
from shutil import which

import paramiko
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import HostKeyError
from planner.remote.known_hosts import ChangedHostKeyError, HostKey, UnknownHostKeyError, known_keys, matches, verify
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


def test_no_key_is_unknown_and_a_certificate_authority_is_no_key(tmp_path: Path) -> None:
    with pytest.raises(UnknownHostKeyError) as caught:
        verify_against(line("10.0.0.3") + line("[10.0.0.3]:2222", KEY, "@cert-authority"), tmp_path)
    assert caught.value.host_key.fingerprint == KEY.fingerprint


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
