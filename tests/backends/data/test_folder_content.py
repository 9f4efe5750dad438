"""What a folder holds: equal for equal content, another for whatever differs."""

import os
from pathlib import Path

import pytest

from backends.data import folder_content
from backends.data.folder_content import END_BYTES, survey


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three files in two folders, of which one is longer than what is read of it."""
    made = tmp_path / "set"
    (made / "train").mkdir(parents=True)
    (made / "train" / "a.bin").write_bytes(b"12")
    (made / "train" / "b.bin").write_bytes(b"345")
    (made / "long.bin").write_bytes(bytes(3 * END_BYTES))
    return made


def test_files_and_bytes_are_counted(folder: Path) -> None:
    found = survey(str(folder))
    assert (found.files, found.bytes) == (3, 5 + 3 * END_BYTES)


def test_the_place_the_times_and_hidden_files_do_not_matter(folder: Path) -> None:
    before = survey(str(folder))
    os.utime(folder / "long.bin", (0, 0))
    (folder / ".cache").mkdir()
    (folder / ".cache" / "x").write_text("x")
    (folder / ".note").write_text("x")
    elsewhere = folder.rename(folder.parent / "elsewhere")
    assert survey(str(elsewhere)) == before


@pytest.mark.parametrize("at", [0, 3 * END_BYTES - 1])
def test_a_changed_byte_at_either_end_shows(at: int, folder: Path) -> None:
    before = survey(str(folder))
    content = bytearray((folder / "long.bin").read_bytes())
    content[at] = 1
    (folder / "long.bin").write_bytes(content)
    after = survey(str(folder))
    assert after.hash != before.hash and after[:2] == before[:2]


def test_of_many_files_some_are_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_content, "FILES_READ", 2)  # long.bin and train/b.bin
    before = survey(str(folder))
    (folder / "train" / "a.bin").write_bytes(b"99")
    assert survey(str(folder)) == before
    (folder / "train" / "b.bin").write_bytes(b"999")
    assert survey(str(folder)) != before


@pytest.mark.parametrize("name", ["none", "empty", "file"])
def test_what_is_no_folder_of_data_is_named(name: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    with pytest.raises(ValueError, match=f"{name}, which the fleet file names as data"):
        survey(str(tmp_path / name))


def test_folders_that_link_to_one_another_are_read_once(tmp_path: Path) -> None:
    names = "abcdefghi"
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "image").write_text(name)
        for other in names:
            (tmp_path / name / f"to_{other}").symlink_to(f"../{other}")
    (tmp_path / "up").symlink_to(".")
    assert survey(str(tmp_path)).files == len(names)


def test_a_pipe_in_the_folder_is_no_file_of_it(tmp_path: Path) -> None:
    (tmp_path / "image").write_text("x")
    os.mkfifo(tmp_path / "pipe")
    assert survey(str(tmp_path)).files == 1


def test_a_folder_that_is_too_deep_or_too_full_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "/".join("d" * 70)).mkdir(parents=True)
    with pytest.raises(ValueError, match="more than 64 folders deep"):
        survey(str(tmp_path))
    monkeypatch.setattr("backends.data.folder_walk.MOST_ENTRIES", 2)
    with pytest.raises(ValueError, match=f"^{tmp_path} has more than 2 entries"):
        survey(str(tmp_path))
