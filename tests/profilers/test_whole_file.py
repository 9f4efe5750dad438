"""A file is there whole, as it was, or not at all."""

import contextlib
import os

import pytest

from profilers.whole_file import whole_file


def test_a_file_is_replaced_when_all_is_written_and_only_its_owner_reads_it(tmp_path):
    path = tmp_path / "plan.json"
    path.write_text("old")
    with whole_file(str(path)) as stream:
        stream.write(b"new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("error", [None, ValueError])
def test_what_fails_or_is_not_wanted_leaves_no_trace(tmp_path, error):
    path = tmp_path / "plan.json"
    path.write_text("old")
    with contextlib.suppress(ValueError), whole_file(str(path), is_wanted=lambda: False) as stream:
        stream.write(b"half")
        if error is not None:
            raise error
    assert [each.name for each in tmp_path.iterdir()] == ["plan.json"]
    assert path.read_text() == "old"


def test_what_somebody_else_has_put_beside_its_place_is_never_written(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "urandom", bytes)  # somebody guesses the name
    other, guessed = tmp_path / "other", tmp_path / f"plan.json.{os.getpid()}-{bytes(8).hex()}"
    for occupy in (lambda: guessed.symlink_to(other), lambda: os.link(other, guessed), lambda: os.mkfifo(guessed)):
        other.write_text("kept")
        occupy()
        with pytest.raises(FileExistsError), whole_file(str(tmp_path / "plan.json")) as stream:
            stream.write(b"new")
        assert other.read_text() == "kept"
        assert not (tmp_path / "plan.json").exists()
        guessed.unlink()
