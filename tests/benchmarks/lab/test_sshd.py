"""Keys of a lab, whole or made again, and whether an sshd answers."""

from pathlib import Path

import pytest

from benchmarks.lab.programs import find_program
from benchmarks.lab.sshd import ensure_key

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
