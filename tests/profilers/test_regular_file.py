"""Only regular files are opened; whatever else has a name is told as what it is, at once."""

import os
from pathlib import Path

import pytest

from profilers.regular_file import open_regular


def test_a_file_is_opened_also_over_a_link(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")
    with open_regular(str(tmp_path / "link")) as stream:
        assert stream.read() == b"content"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (os.mkdir, "it is a folder"),
        (os.mkfifo, "it is a pipe"),
        (lambda path: os.symlink(os.devnull, path), "a device"),
    ],
)
def test_what_is_no_file_is_named_and_not_waited_for(tmp_path: Path, make: object, said: str) -> None:
    path = str(tmp_path / "other")
    assert callable(make)
    make(path)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match=f"{said}, and no file: '{path}'"):
        open_regular(path)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_missing_file_is_an_error_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_regular(str(tmp_path / "gone"))
