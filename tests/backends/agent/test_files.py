"""Files on a device: plain names in one cache folder, forgotten after a month without use."""

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from backends.agent import files
from backends.agent.claims import claimed
from backends.protocol.member_specs import JobSpec, MemberSpec, ReplicaSpec
from tests.running import ROOT


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    yield tmp_path / "planner"
    files.release()


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def unused(path: str) -> None:
    """Make it look as if nobody had used it for longer than files are kept."""
    files.release()
    long_ago = time.time() - files.UNUSED_S - 1
    os.utime(path, (long_ago, long_ago))


def test_a_file_is_kept_under_its_name(cache: Path) -> None:
    assert files.store("some.bin", b"content") == str(cache / "some.bin")
    assert files.find("some.bin", digest_of(b"content")) == str(cache / "some.bin")
    assert files.find("other.bin", digest_of(b"content")) is None
    assert files.fetch(str(cache / "some.bin")) == b"content"


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/../../x", "/etc/x", "a//x", "a/"])
def test_no_file_leaves_the_cache(name: str) -> None:
    with pytest.raises(ValueError, match="not a plain file name"):
        files.store(name, b"x")


def test_what_nobody_used_for_a_month_is_removed(cache: Path) -> None:
    unused(files.store("old.bin", b"x"))
    files.store("model-1/net.py", b"x")
    unused(str(cache / "model-1"))
    kept = files.store("model-2/net.py", b"x")
    files.release()
    assert sorted(os.listdir(str(cache))) == ["model-2"]
    assert os.path.exists(kept)


def test_what_is_used_again_is_kept(cache: Path) -> None:
    old = files.store("old.bin", b"x")
    files.store("model-1/net.py", b"x")
    unused(old)
    unused(str(cache / "model-1"))
    assert files.find("old.bin", digest_of(b"x"))
    files.use("model-1/net.py")
    files.store("new.bin", b"x")
    files.release()
    assert sorted(os.listdir(str(cache))) == ["model-1", "new.bin", "old.bin"]


def test_what_an_agent_uses_for_longer_than_a_month_is_kept(cache: Path) -> None:
    old = files.store("data-1.npz", b"x")
    unused(old)
    files.claim("data-1.npz")
    files.store("data-2.npz", b"x")
    assert os.path.exists(old)
    files.release()
    files.store("data-3.npz", b"x")
    assert not os.path.exists(old)


def test_what_an_order_names_by_its_path_is_claimed(cache: Path) -> None:
    replica = ReplicaSpec(
        "torch", str(cache / "model-1" / "net.py:make"), job=JobSpec("", str(cache / "project-1"), "", "")
    )
    files.claim_paths(MemberSpec("a", replica, str(cache / "data-1.npz"), "/elsewhere/data-2.npz", 8, 0))
    assert {"model-1", "project-1", "data-1.npz"} == {name for name in claimed(str(cache)) if "claims" not in name}


def test_a_file_that_is_gone_can_be_forgotten(cache: Path) -> None:
    path = files.store("some.bin", b"x")
    files.remove(path)
    files.remove(path)
    assert files.find("some.bin", digest_of(b"x")) is None


def test_what_a_killed_agent_had_not_written_to_its_end_is_forgotten_with_the_file(cache: Path) -> None:
    path = files.store("run-1.npz", b"x")
    killed = "import os, sys\nfrom profilers.whole_file import whole_file\n"
    killed += "with whole_file(sys.argv[1]) as stream:\n    os._exit(1)"
    subprocess.run([sys.executable, "-c", killed, path], check=False, cwd=ROOT)
    (cache / "run-1.npz.md").touch()
    assert len(list(cache.glob("run-1.npz*"))) == 3
    files.remove(path)
    assert [each.name for each in cache.glob("run-1.npz*")] == ["run-1.npz.md"]


@pytest.mark.parametrize("damaged", [b"", b"cont", b"contenT", b"content and more"])
def test_what_is_damaged_is_removed_so_that_it_is_sent_again(cache: Path, damaged: bytes) -> None:
    Path(files.store("data-1.npz", b"content")).write_bytes(damaged)
    assert files.find("data-1.npz", digest_of(b"content")) is None
    assert not (cache / "data-1.npz").exists()
    files.store("data-1.npz", b"content")
    assert files.find("data-1.npz", digest_of(b"content")) == str(cache / "data-1.npz")


def test_no_other_user_of_a_device_reads_what_is_kept(cache: Path) -> None:
    path = Path(files.store("model-1/parts/net.py", b"x"))
    folders = [parent for parent in path.parents if parent.is_relative_to(cache)]
    assert {each.stat().st_mode & 0o777 for each in folders} == {0o700}
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_cache_that_was_open_to_others_is_closed(cache: Path) -> None:
    cache.mkdir(0o755)
    files.cache()
    assert cache.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink(os.devnull, path)])
def test_what_is_named_like_a_kept_file_and_is_none_is_removed_at_once(
    make: Callable[[str], None],
) -> None:
    target = files.path("file-abc")
    make(target)
    assert files.find("file-abc", "0" * 64) is None
    assert not os.path.lexists(target)


def test_a_pipe_is_not_fetched() -> None:
    os.mkfifo(files.path("pipe"))
    with pytest.raises(OSError, match="it is a pipe, and no file"):
        files.FileContent(files.path("pipe"))


def test_a_file_that_became_shorter_is_sent_as_long_as_was_said_with_zeros(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.npz"
    path.write_bytes(b"content")
    content = files.FileContent(str(path))
    os.truncate(path, 3)
    assert b"".join(content.chunks()) == b"con" + bytes(4)


def test_a_file_is_sent_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.npz"
    path.write_bytes(bytes(range(256)) * 10_000)
    chunks = list(files.FileContent(str(path)).chunks())
    assert b"".join(chunks) == path.read_bytes() and max(map(len, chunks)) == 1 << 20
