"""A project's folder on a device: made of contents in the cache, whole or not at all."""

import hashlib
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.agent import files, projects
from backends.protocol.orders import AssembleProject, FindMissing, ProjectFile, cached_as


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "planner"


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def stored(path: str, content: bytes = b"x", mode: int = 0o644) -> ProjectFile:
    """A file whose content has been sent."""
    files.store(cached_as(digest_of(content)), content)
    return ProjectFile(path, digest_of(content), mode)


def assembled(*listed: ProjectFile) -> str:
    return projects.assemble(None, AssembleProject("project-1", listed))


def test_the_digests_that_the_cache_lacks_are_named():
    stored("a.py", b"here")
    here, missing = digest_of(b"here"), digest_of(b"not here")
    assert projects.find_missing(None, FindMissing((here, missing))) == (missing,)


@pytest.mark.parametrize("text", ["", "../x", "0" * 63, "G" * 64, "0" * 64 + "\n"])
def test_what_is_no_digest_is_refused(text: str):
    with pytest.raises(ValueError, match="is not a SHA-256"):
        projects.find_missing(None, FindMissing((text,)))


def test_files_lie_in_one_folder_with_their_contents_and_permissions(cache: Path):
    folder = assembled(stored("train.py", b"1"), stored("parts/net.py", b"2"), stored("run.sh", b"3", 0o755))
    assert folder == str(cache / "project-1")
    found = {str(p.relative_to(folder)): p.read_bytes() for p in Path(folder).rglob("*") if p.is_file()}
    assert found == {"train.py": b"1", "parts/net.py": b"2", "run.sh": b"3"}
    assert os.access(Path(folder, "run.sh"), os.X_OK) and not os.access(Path(folder, "train.py"), os.X_OK)


def test_a_folder_that_is_whole_is_used_again_with_what_was_written_in_it():
    listed = stored("train.py", b"1")
    folder = Path(assembled(listed))
    (folder / "weights.pt").write_bytes(b"trained")
    assert assembled(listed) == str(folder)
    assert (folder / "weights.pt").read_bytes() == b"trained"


@pytest.mark.parametrize("damage", ["changed", "removed", "linked", "under a linked folder"])
def test_a_folder_that_is_not_whole_is_set_aside_and_made_anew(cache: Path, tmp_path: Path, damage: str):
    listed = stored("parts/net.py", b"1")
    folder = Path(assembled(listed))
    (folder / "weights.pt").write_bytes(b"trained")
    file, elsewhere = folder / "parts/net.py", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "net.py").write_bytes(b"1")
    if damage == "changed":
        file.write_bytes(b"2")
    else:
        file.unlink()
    if damage == "linked":
        file.symlink_to(elsewhere / "net.py")
    if damage == "under a linked folder":
        file.parent.rmdir()
        file.parent.symlink_to(elsewhere)
    assert assembled(listed) == str(folder)
    assert file.read_bytes() == b"1" and not file.is_symlink() and not file.parent.is_symlink()
    (aside,) = cache.glob("project-1.*")
    assert (aside / "weights.pt").read_bytes() == b"trained"
    assert (elsewhere / "net.py").read_bytes() == b"1"


def test_content_that_was_not_sent_leaves_no_folder_behind(cache: Path):
    with pytest.raises(ValueError, match="^net.py: its content is not in the cache"):
        assembled(stored("train.py"), ProjectFile("net.py", digest_of(b"never sent"), 0o644))
    assert not list(cache.glob("project-*"))


def test_damaged_content_is_as_good_as_missing(cache: Path):
    listed = stored("train.py", b"1")
    (cache / cached_as(listed.digest)).write_bytes(b"2")
    with pytest.raises(ValueError, match="^train.py: its content is not in the cache"):
        assembled(listed)
    (cache / cached_as(listed.digest)).write_bytes(b"half")
    assert projects.find_missing(None, FindMissing((listed.digest,))) == (listed.digest,)
    assert not list(cache.glob("project-*"))


def test_no_other_user_of_a_device_reads_a_project():
    folder = Path(assembled(stored("parts/net.py", b"1"), stored("run.sh", b"2", 0o755)))
    modes = {str(each.relative_to(folder)): each.stat().st_mode & 0o777 for each in (folder, *folder.rglob("*"))}
    assert modes == {".": 0o700, "parts": 0o700, "parts/net.py": 0o600, "run.sh": 0o700}


@pytest.mark.parametrize("path", ["", ".", "..", "../x", "a/../../x", "/etc/x", "a//x", "a/", "./a", "a\0b"])
def test_no_path_leaves_the_folder(path: str):
    with pytest.raises(ValueError, match="is not a path inside of a project"):
        assembled(stored(path))


def test_a_path_stands_for_one_file():
    with pytest.raises(ValueError, match="'a.py' is in the project twice"):
        assembled(stored("a.py"), stored("a.py"))
    with pytest.raises(ValueError, match="'a' is a file, and the folder of 'a/b/c'"):
        assembled(stored("a"), stored("a/b/c"))


PARTS = st.sampled_from(["a", "b", "..", ".", "", "/", "~", "x\\y", "...", "c.py"])


@given(st.lists(st.lists(PARTS, min_size=1, max_size=4).map("/".join), min_size=1, max_size=3))
def test_whatever_the_paths_nothing_is_written_outside(tmp_path_factory: pytest.TempPathFactory, paths: list[str]):
    root = tmp_path_factory.mktemp("paths")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_CACHE_HOME", str(root / "cache"))
        listed = [stored(path, b"x") for path in paths]
        try:
            folder = assembled(*listed)
        except ValueError:
            folder = ""
        files.release()
        found = [path for path in root.rglob("*") if path.is_file() and not path.name.startswith("file-")]
        assert sorted(map(str, found)) == sorted(str(Path(folder, path)) for path in paths if folder)


def test_a_project_is_kept_for_a_month_after_its_last_use(cache: Path):
    listed = stored("train.py", b"1")
    folder = assembled(listed)
    long_ago = time.time() - files.UNUSED_S - 1
    os.utime(folder, (long_ago, long_ago))
    files.use("project-1")
    files.release()
    files.prune()
    assert os.path.isdir(folder)
    os.utime(folder, (long_ago, long_ago))
    files.prune()
    assert not os.path.exists(folder)
