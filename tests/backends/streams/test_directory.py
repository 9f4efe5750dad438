"""Samples are read from files as those come, from any offset on."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backends.streams.directory import DirectorySource, DirectoryWriter, file_name
from backends.streams.source import StreamRecord


def numbered(*offsets: int) -> list[StreamRecord]:
    return [StreamRecord(offset, b"sample %d" % offset) for offset in offsets]


def read_all(source: DirectorySource) -> list[int] | None:
    """The offsets of what is there; None at the end."""
    found: list[int] = []
    while records := source.read(0.0):
        found += [record.offset for record in records]
    return found if records is not None or found else None


def test_files_that_come_are_read_once_and_a_file_in_the_making_is_not(tmp_path: Path) -> None:
    writer, source = DirectoryWriter(str(tmp_path)), DirectorySource(str(tmp_path))
    source.begin(0)
    assert read_all(source) == []
    writer.write(numbered(0, 1, 2))
    (tmp_path / (file_name(3) + ".part")).write_bytes(b"half")
    assert read_all(source) == [0, 1, 2]
    writer.write(numbered(3))
    assert (read_all(source), read_all(source)) == ([3], [])
    writer.end(4)
    assert read_all(source) in ([], None) and source.read(0.0) is None


@settings(deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=8), st.integers(0, 50))
def test_it_begins_at_any_offset(tmp_path_factory: pytest.TempPathFactory, sizes: list[int], offset: int) -> None:
    folder = str(tmp_path_factory.mktemp("samples"))
    writer, total = DirectoryWriter(folder), 0
    for size in sizes:
        writer.write(numbered(*range(total, total + size)))
        total += size
    assert writer.next_offset() == total
    source = DirectorySource(folder)
    source.begin(offset)
    found: list[int] = []
    for _ in sizes:
        found += [record.offset for record in source.read(0.0) or []]
    assert found == list(range(offset, total))


def test_a_damaged_file_counts_as_a_malformed_sample_and_the_next_is_read(tmp_path: Path) -> None:
    writer, source = DirectoryWriter(str(tmp_path)), DirectorySource(str(tmp_path))
    writer.write(numbered(0, 1, 2))
    writer.write(numbered(3))
    path = tmp_path / file_name(0)
    path.write_bytes(path.read_bytes()[:-1])
    (tmp_path / file_name(2)).write_bytes(b"\xff" * 40)
    source.begin(0)
    assert source.read(0.0) == [*numbered(0, 1), StreamRecord(2, b"")]
    assert source.read(0.0) == [StreamRecord(2, b"")]
    assert source.read(0.0) == numbered(3)


def test_a_directory_that_is_not_there_is_told_and_read_when_it_is(tmp_path: Path) -> None:
    source = DirectorySource(str(tmp_path / "later"))
    source.begin(0)
    with pytest.raises(OSError, match="later"):
        source.read(0.0)
    DirectoryWriter(str(tmp_path / "later")).write(numbered(0))
    assert source.read(0.0) == numbered(0)


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))


UNREADABLE: dict[str, Callable[[Path], object]] = {
    "a folder": Path.mkdir,
    "a pipe that nobody writes to": os.mkfifo,
    "a link that leads nowhere": lambda path: path.symlink_to("gone"),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a socket": a_socket,
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_what_is_named_like_a_file_of_samples_is_skipped_and_named(tmp_path: Path, kind: str) -> None:
    writer, source = DirectoryWriter(str(tmp_path)), DirectorySource(str(tmp_path))
    writer.write(numbered(0))
    UNREADABLE[kind](tmp_path / file_name(1))
    writer.write(numbered(2))
    source.begin(0)
    assert [source.read(0.0) for _ in range(3)] == [numbered(0), [], numbered(2)]
    assert list(source.skipped) == [file_name(1)]


def test_a_file_whose_name_is_no_offset_hides_none_that_come_later(tmp_path: Path) -> None:
    writer, source = DirectoryWriter(str(tmp_path)), DirectorySource(str(tmp_path))
    (tmp_path / "notes.samples").write_bytes(b"none")
    source.begin(0)
    assert source.read(0.0) == []
    writer.write(numbered(0))
    assert (source.read(0.0), list(source.skipped)) == (numbered(0), ["notes.samples"])
    assert writer.next_offset() == 1


def test_before_a_run_the_directory_has_to_be_there(tmp_path: Path) -> None:
    DirectorySource(str(tmp_path)).require_reached()
    (tmp_path / "file").touch()
    for name in ("gone", "file"):
        with pytest.raises(OSError, match=name):
            DirectorySource(str(tmp_path / name)).require_reached()
