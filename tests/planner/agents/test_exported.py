"""Exported files are known by a mark at one of their ends, with which they can still be read."""

import io
import zipfile
from pathlib import Path

import pytest

from planner.agents.exported import MARK, is_exported, marked


def test_a_zip_archive_has_the_mark_as_its_comment() -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("a", bytes(200_000))
    with zipfile.ZipFile(io.BytesIO(marked(stream.getvalue()))) as archive:
        assert archive.comment == MARK and archive.testzip() is None


@pytest.mark.parametrize("before", [0, 10, 60_000])
def test_what_has_the_mark_near_an_end_stays_as_it_is(before: int) -> None:
    content = bytes(before) + MARK + bytes(200_000)
    assert marked(content) == content and marked(content[::-1]) != content[::-1]


def test_a_mark_is_found_in_files_of_weights_only(tmp_path: Path) -> None:
    for name, content in (("a.pth", marked(bytes(200_000))), ("b.pth", bytes(9)), ("c.csv", marked(b"1"))):
        (tmp_path / name).write_bytes(content)
    assert [path.name for path in sorted(tmp_path.iterdir()) if is_exported(path)] == ["a.pth"]
