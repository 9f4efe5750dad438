"""What no disk takes is kept in an open file that leaves nothing behind."""

import errno
import os
import subprocess
import sys
import tempfile

import pytest

from backends.hosting import spare_place


def text(content):
    return lambda stream: stream.write(content)


def test_a_newer_content_takes_the_place_of_the_older_and_no_name_is_left(tmp_path):
    paths = {spare_place.keep(text(content), lambda: True, [str(tmp_path)]) for content in (b"older", b"new")}
    (path,) = paths
    with open(path, "rb") as stream:
        assert stream.read() == b"new"
    assert list(tmp_path.iterdir()) == []


def test_other_processes_of_the_user_read_it(tmp_path):
    path = spare_place.keep(text(b"kept"), lambda: True, [str(tmp_path)])
    read = [sys.executable, "-c", "import sys; print(open(sys.argv[1]).read())", path]
    assert subprocess.run(read, capture_output=True, text=True, check=True).stdout.strip() == "kept"


def test_a_folder_without_room_is_passed_over_and_without_any_the_reason_is_raised(tmp_path):
    missing = str(tmp_path / "missing")
    assert spare_place.keep(text(b"x"), lambda: True, [missing, str(tmp_path)]).startswith(f"/proc/{os.getpid()}/")
    with pytest.raises(OSError, match="No such file"):
        spare_place.keep(text(b"x"), lambda: True, [missing])


def test_memory_is_there_where_no_folder_takes_temporary_files(monkeypatch):
    def none():
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    with open(spare_place.keep(text(b"x"), lambda: True), "rb") as stream:
        assert stream.read() == b"x"


def test_where_no_other_process_could_open_it_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(os.path, "isdir", lambda path: False)  # a Mac has no /proc
    with pytest.raises(OSError, match="this system opens no file without a name to other processes"):
        spare_place.keep(lambda stream: pytest.fail("it was written"), lambda: True, [str(tmp_path)])


def test_what_is_no_longer_wanted_does_not_take_the_place_of_the_older(tmp_path):
    path = spare_place.keep(text(b"older"), lambda: True, [str(tmp_path)])
    with pytest.raises(OSError, match="not wanted"):
        spare_place.keep(text(b"late"), lambda: False, [str(tmp_path)])
    with open(path, "rb") as stream:
        assert stream.read() == b"older"
