"""Keys of a lab, whole or made again, and whether an sshd answers."""

import socket
from pathlib import Path

import pytest

from benchmarks.lab.errors import LabError
from benchmarks.lab.programs import find_program
from benchmarks.lab.sshd import answers, ensure_key

keygen = pytest.mark.skipif(find_program("ssh-keygen") is None, reason="ssh-keygen is not installed")


@keygen
def test_half_a_pair_of_keys_is_made_again(tmp_path: Path) -> None:
    key, public = tmp_path / "key", tmp_path / "key.pub"
    ensure_key(key)
    first = key.read_text(), public.read_text()
    ensure_key(key)
    assert (key.read_text(), public.read_text()) == first
    public.unlink()
    ensure_key(key)
    assert public.read_text() != first[1]


@keygen
def test_a_key_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="missing/key: ssh-keygen makes no key: "):
        ensure_key(tmp_path / "missing" / "key")


def test_nobody_answers_where_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        assert other.getsockname()[1] != 22
    assert not answers("127.86.75.30", 0.2)
