"""A user's project: which files of its folder belong to it, and how they reach a device."""

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.protocol.orders import StoreFile
from planner.agents import project
from planner.agents.call import Sink
from planner.agents.client import AgentClient
from planner.agents.exported import MARK, marked
from planner.agents.project import Project, send_project
from planner.errors import AgentError, ProjectError
from planner.fleet.device import Device, Interpreter
from planner.remote.local import LocalRemote


def write(folder: Path, *paths: str) -> None:
    """Make files, each with its own path as content."""
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(path)


def paths_of(folder: Path) -> list[str]:
    return [file.path for file in Project.of(folder).files]


def test_a_project_is_what_the_user_wrote(tmp_path: Path) -> None:
    write(tmp_path, "train.py", "net/__init__.py", "net/blocks.py", "data/small.csv", ".env")
    write(tmp_path, ".git/HEAD", ".mypy_cache/x", "net/__pycache__/blocks.pyc", "old.pyc", "web/node_modules/a.js")
    write(tmp_path, "venv/pyvenv.cfg", "venv/bin/python", "env39/pyvenv.cfg")
    write(tmp_path, "runs/2024/result.json", "profile.json", "profile-2.json", "plan.json", "fleet.toml")
    write(tmp_path, "audit.json", "tx2.prom", "board/x/events.out.tfevents.1.host")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(tmp_path / "socket"))  # the whole path may be too long for a socket
        assert paths_of(tmp_path) == [".env", "data/small.csv", "net/__init__.py", "net/blocks.py", "train.py"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_plannerignore_of_a_windows_editor_counts_as_well(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "train.py").write_text("")
    (tmp_path / "weights.bin").write_text("")
    (tmp_path / ".plannerignore").write_text("*.bin\r\n", encoding=encoding)
    assert paths_of(tmp_path) == ["train.py"]


def test_plannerignore_names_what_else_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, "train.py", "big.bin", "data/a.csv", "data/b.npz", "sub/data/c.csv", "out/x", "sub/out", "b.npz")
    (tmp_path / ".plannerignore").write_text("# comment\n\n*.bin\ndata/*.csv\nout/\nsub/data\n")
    assert paths_of(tmp_path) == ["b.npz", "data/b.npz", "sub/out", "train.py"]


@pytest.mark.parametrize("name", ["model.pth", "model.onnx", "model.weights.h5"])
def test_an_exported_model_is_left_out_unless_something_names_it(tmp_path: Path, name: str) -> None:
    write(tmp_path, "train.py")
    (tmp_path / name).write_bytes(marked(bytes(100_000)))
    (tmp_path / "model.py").write_bytes(b'"""' + MARK + f' for {name}"""'.encode())
    (tmp_path / "pretrained.pth").write_bytes(bytes(100_000))
    others = ["model.py", "pretrained.pth", "train.py"]
    assert paths_of(tmp_path) == others
    named = [file.path for file in Project.of(tmp_path, ("python", "train.py", f"--from={name}")).files]
    assert named == sorted([*others, name])
    (tmp_path / "config.yaml").write_text(f"begin: {name}")
    assert paths_of(tmp_path) == sorted(["config.yaml", *others, name])


def test_links_are_followed_inside_of_the_folder_only(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    write(folder, "net/blocks.py")
    write(tmp_path, "secret", "elsewhere/x.py")
    (folder / "blocks.py").symlink_to("net/blocks.py")
    (folder / "also").symlink_to("net")
    (folder / "net/up").symlink_to("..")
    (folder / "key").symlink_to(tmp_path / "secret")
    (folder / "other").symlink_to("../elsewhere")
    (folder / "nowhere").symlink_to("no-such-file")
    (folder / "circle").symlink_to("circle")
    found = Project.of(folder)
    assert [file.path for file in found.files] == ["also/blocks.py", "blocks.py", "net/blocks.py"]
    assert found.outside == ("circle", "key", "nowhere", "other")


def test_the_fingerprint_changes_with_a_path_a_content_or_who_may_execute_it(tmp_path: Path) -> None:
    write(tmp_path, "a.py")
    seen = [Project.of(tmp_path).fingerprint]
    os.utime(tmp_path / "a.py", (0, 0))
    assert Project.of(tmp_path).fingerprint == seen[0]
    (tmp_path / "a.py").chmod(0o755)
    seen.append(Project.of(tmp_path).fingerprint)
    (tmp_path / "a.py").write_text("b")
    seen.append(Project.of(tmp_path).fingerprint)
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    seen.append(Project.of(tmp_path).fingerprint)
    assert len(set(seen)) == 4


def test_a_project_too_large_to_send_names_its_largest_files(tmp_path: Path) -> None:
    for name, megabytes in (("a.npz", 60), ("b.npz", 50), ("c.npz", 1)):
        with (tmp_path / name).open("wb") as file:
            file.truncate(megabytes * 1_000_000)
    with pytest.raises(ProjectError) as raised:
        Project.of(tmp_path)
    text = str(raised.value)
    assert "111 MB" in text and "100 MB" in text and str(tmp_path / ".plannerignore") in text
    assert text.index("a.npz (60.0 MB)") < text.index("b.npz (50.0 MB)") < text.index("c.npz")


def test_a_folder_that_is_no_project_is_told_by_its_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project, "LIMIT_FILES", 3)
    write(tmp_path, "a", "b", "c")
    assert len(paths_of(tmp_path)) == 3
    write(tmp_path, "d")
    with pytest.raises(ProjectError, match="more than 3 files; is it the folder of your project alone"):
        Project.of(tmp_path)


@given(st.dictionaries(st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map("/".join), st.binary(max_size=3)))
def test_every_content_has_its_digest_and_every_path_its_content(
    tmp_path_factory: pytest.TempPathFactory, written: dict[str, bytes]
) -> None:
    folder = tmp_path_factory.mktemp("project")
    kept: dict[str, bytes] = {}
    for path, content in written.items():
        if not any(other.startswith(f"{path}/") or path.startswith(f"{other}/") for other in kept):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
            kept[path] = content
    found = Project.of(folder)
    assert {file.path: found.contents[file.digest] for file in found.files} == kept


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[AgentClient]:
    remote = LocalRemote("tx2")
    cache = tmp_path / "cache"
    device = Device(name="tx2", interpreter=Interpreter(sys.executable, environment={"XDG_CACHE_HOME": str(cache)}))
    yield AgentClient.launch(device, remote)
    remote.close()


@pytest.fixture
def sent(agent: AgentClient, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the files that are sent to the device."""
    sizes: list[int] = []
    start = agent.start

    def recorded(order: object, blob: bytes = b"", sink: Sink | None = None) -> object:
        if isinstance(order, StoreFile):
            sizes.append(order.size)
        return start(order, blob, sink)

    monkeypatch.setattr(agent, "start", recorded)
    return sizes


def fetched(agent: AgentClient, path: str) -> bytes:
    content = bytearray()
    agent.fetch(path, content.extend)
    return bytes(content)


def test_a_device_gets_a_project_and_then_only_what_has_changed(
    agent: AgentClient, sent: list[int], tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    write(folder, *(f"part-{number:03}.py" for number in range(40)), "net/blocks.py")
    path = send_project(agent, Project.of(folder))
    assert len(sent) == 41
    assert fetched(agent, f"{path}/net/blocks.py") == b"net/blocks.py"

    sent.clear()
    assert send_project(agent, Project.of(folder)) == path
    assert sent == []

    (folder / "net/blocks.py").write_text("changed")
    other = send_project(agent, Project.of(folder))
    assert other != path and sent == [len("changed")]
    assert fetched(agent, f"{other}/net/blocks.py") == b"changed"
    assert fetched(agent, f"{path}/net/blocks.py") == b"net/blocks.py"


def test_errors_of_the_device_name_the_files_of_this_machine(agent: AgentClient, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    write(folder, "train.py")
    path = send_project(agent, Project.of(folder))
    with pytest.raises(AgentError, match=f"{folder}/missing.py"):
        fetched(agent, f"{path}/missing.py")


def test_folders_that_all_link_to_one_another_are_walked_once_behind_each_link(tmp_path: Path) -> None:
    names = "abcdefghi"
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "file.py").write_text(name)
        for other in names.replace(name, ""):
            (tmp_path / name / f"to_{other}").symlink_to(f"../{other}")
    project = Project.of(tmp_path)
    paths = {file.path for file in project.files}
    assert {f"{name}/file.py" for name in names} <= paths and "a/to_b/file.py" in paths
    assert len(paths) <= 9 + 9 * 8 * 9


def test_a_walk_that_is_too_deep_or_too_long_ends_with_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "/".join("d" * 70)).mkdir(parents=True)
    with pytest.raises(ProjectError, match="is more than 64 folders deep; is .* the folder of your project alone"):
        Project.of(tmp_path)
    monkeypatch.setattr("planner.agents.project.LIMIT_ENTRIES", 20)
    with pytest.raises(ProjectError, match="makes more than 20 entries, links included; is .* the folder"):
        Project.of(tmp_path)


def test_what_is_neither_file_nor_folder_is_not_sent_and_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text("")
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "null.py").symlink_to(os.devnull)
    assert [file.path for file in Project.of(tmp_path).files] == ["job.py"]
