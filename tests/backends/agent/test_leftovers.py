"""What is left in a cache is listed and removed; what is used there, or is not ours, stays."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from backends.agent import files
from backends.agent.claims import Claims
from backends.agent.leftovers import find_cache, list_entries, remove_entries
from backends.protocol.events import CacheEntry
from backends.protocol.orders import FindCache, ListCache, RemoveEntries

ARCHIVE = "agent-0123456789abcdef.pyz"
DATA, GONE, MODEL, PROJECT = (
    "data-0123456789abcdef.npz",
    "data-000000000000.npz",
    "model-0123456789ab",
    "project-0123456789abcdef",
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache with something in it; this process is an agent that was started from its archive."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("sys.argv", [str(tmp_path / "planner" / ARCHIVE)])
    files.store(ARCHIVE, b"agent")
    files.store(DATA, b"12345")
    files.store(MODEL + "/net.py", b"12")
    files.store(MODEL + "/parts/blocks.py", b"3")
    yield tmp_path / "planner"
    files.release()


def listed() -> dict[str, CacheEntry]:
    return {entry.name: entry for entry in list_entries(None, ListCache())}


def remove(*names: str) -> dict[str, str]:
    return remove_entries(None, RemoveEntries(names))


def test_entries_have_their_kind_size_and_age(cache: Path) -> None:
    find_cache(None, FindCache())
    os.utime(cache / DATA, (1.0, 1.0))
    found = listed()
    assert {name: (entry.kind, entry.size_bytes, entry.in_use) for name, entry in found.items()} == {
        DATA: ("data", 5, False),
        MODEL: ("model", 3, False),
    }
    assert found[DATA].unused_s > 1e9 > found[MODEL].unused_s >= 0.0


def test_what_is_not_ours_is_neither_listed_nor_removed(cache: Path) -> None:
    find_cache(None, FindCache())
    for name in ("notes.txt", "data-of-mine", "run-2026", "runs"):
        (cache / name).write_text("mine")
    assert set(listed()) == {DATA, MODEL}
    for name in ("notes.txt", "run-2026", "..", "run-0123456789ab-x/../../x"):
        with pytest.raises(ValueError, match=r"is nothing that planner keeps|is not a plain file name"):
            remove(name)
    assert remove(DATA, MODEL) == {}
    assert sorted(os.listdir(cache)) == ["data-of-mine", "notes.txt", "run-2026", "runs"]


def test_what_another_agent_uses_stays_with_its_archive(cache: Path) -> None:
    find_cache(None, FindCache())
    other = Claims(str(cache))
    other.add(MODEL)
    other.add(ARCHIVE)
    assert {name for name, entry in listed().items() if entry.in_use} == {MODEL}
    assert remove(DATA, MODEL) == {MODEL: "a run under way uses it"}
    assert {MODEL, ARCHIVE} <= {*os.listdir(cache)}
    other.release()
    assert remove(MODEL) == {}
    assert not cache.exists()


def test_links_are_removed_and_not_followed(cache: Path, tmp_path: Path) -> None:
    find_cache(None, FindCache())
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "data").write_text("much")
    (cache / PROJECT).symlink_to(tmp_path / "mine")
    (cache / MODEL / "link").symlink_to(tmp_path / "mine")
    assert listed()[PROJECT].size_bytes == os.lstat(cache / PROJECT).st_size
    assert remove(*listed()) == {}
    assert (tmp_path / "mine" / "data").read_text() == "much"


def test_what_cannot_be_removed_is_told_and_hides_no_other(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find_cache(None, FindCache())

    def refuse(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(files.shutil, "rmtree", refuse)
    assert remove(MODEL, DATA) == {MODEL: "Permission denied"}
    assert os.listdir(cache) == [MODEL]


def test_equal_caches_are_told_from_others(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = find_cache(None, FindCache())
    assert first.path == str(cache)
    (tmp_path / "link").symlink_to(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "link"))
    assert find_cache(None, FindCache()).identity == first.identity
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    assert find_cache(None, FindCache()).identity != first.identity
