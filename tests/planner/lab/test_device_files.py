"""An emulated device's files: the product can read its /proc, and no reader sees half a file."""

from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.lab.device_files import SwappedFiles, hide, meminfo, show_own, stat, write_labels
from planner.lab.power_monitors import labels
from profilers import procfs
from profilers.counters import UNITS, Counters
from profilers.file_tree import FileTree, Unavailable


@pytest.mark.parametrize(("cpus", "cores"), [(0.25, 1), (1.0, 1), (1.5, 2), (2.0, 2)])
def test_a_device_has_as_many_processors_as_its_quota_takes(cpus: float, cores: int) -> None:
    assert list(procfs.parse_stat(stat(cpus, 0.0, 1.0))) == list(range(cores))


@given(st.floats(0, 1), st.floats(0.1, 1e6), st.floats(0.05, 8))
def test_load_is_the_share_of_what_the_device_may_use(share: float, lasted_s: float, cpus: float) -> None:
    for busy, total in procfs.parse_stat(stat(cpus, share * lasted_s, lasted_s)).values():
        assert 0 <= busy <= total
        assert total == pytest.approx(100 * lasted_s, abs=1)
        assert busy == pytest.approx(100 * share * lasted_s, abs=1)


def test_limited_memory_is_in_use_by_its_control_group() -> None:
    found = procfs.parse_meminfo(meminfo(limit_bytes=2 << 30, used_bytes=1 << 29))
    assert found == {"MemTotal": 2 << 30, "MemAvailable": 3 << 29}
    assert procfs.parse_meminfo(meminfo(1 << 30, 2 << 30))["MemAvailable"] == 0


def test_what_an_emulated_device_cannot_know_is_null_with_its_reason(tmp_path: Path) -> None:
    write_labels(str(tmp_path), "tx2")
    (tmp_path / "proc/stat").write_text(stat(0.5, 30.0, 40.0))
    (tmp_path / "proc/meminfo").write_text(meminfo(1 << 30, 1 << 28))
    counters = Counters(FileTree(str(tmp_path)))
    values = {name: read() for name, read in counters.readers.items()}
    assert (values["u_cpu"], values["u_mem"]) == (0.75, 0.25)
    assert set(values) <= {"u_cpu", "u_mem", "f_cpu"}
    assert set(counters.reasons) == set(UNITS) - set(values)
    assert counters.reasons["m_swap"] == "/proc/meminfo has no SwapTotal"


def test_a_device_without_a_limit_sees_the_machine_s_memory(tmp_path: Path) -> None:
    show_own(str(tmp_path), "proc/meminfo")
    show_own(str(tmp_path), "proc/meminfo")
    assert "MemTotal" in procfs.parse_meminfo(FileTree(str(tmp_path)).text("proc/meminfo"))


def test_a_device_that_becomes_another_kind_keeps_no_rail_of_the_old(tmp_path: Path) -> None:
    write_labels(str(tmp_path), "tx2")
    write_labels(str(tmp_path), "nano")
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.glob("sys/**/rail_name_*")} == set(labels("nano"))
    write_labels(str(tmp_path), None)
    assert not list(tmp_path.glob("sys/**/rail_name_*"))


def test_files_change_and_go_together(tmp_path: Path) -> None:
    tree, files = FileTree(str(tmp_path)), SwappedFiles(str(tmp_path), ["proc/a", "sys/b/c"])
    for text in ("1", "a long text of\ntwo lines", "2"):
        files.write({"proc/a": text, "sys/b/c": text})
        assert (tree.text("proc/a"), tree.text("sys/b/c")) == (text, text)
    files.close()
    files.close()
    for name in ("proc/a", "sys/b/c"):
        with pytest.raises(Unavailable, match="does not exist"):
            tree.text(name)


def test_what_a_killed_emulator_left_is_no_reading_and_no_hindrance(tmp_path: Path) -> None:
    SwappedFiles(str(tmp_path), ["a"]).write({"a": "1"})
    hide(str(tmp_path))
    hide(str(tmp_path))
    assert not (tmp_path / "a").exists()
    (tmp_path / "now/shown").symlink_to("0")
    (tmp_path / "now/shown.new").symlink_to("0")
    files = SwappedFiles(str(tmp_path), ["a"])
    assert not (tmp_path / "a").exists()
    files.write({"a": "2"})
    assert (tmp_path / "a").read_text() == "2\n"


def test_no_reader_sees_half_a_file(tmp_path: Path) -> None:
    names = [f"file{number}" for number in range(3)]
    files, tree = SwappedFiles(str(tmp_path), names), FileTree(str(tmp_path))
    before = "0"
    files.write(dict.fromkeys(names, before))
    for turn in range(20):
        now = str(turn % 10) * (1, 30, 2, 11, 5)[turn % 5]
        with ExitStack() as opened:
            readers = [opened.enter_context((tmp_path / name).open()) for name in names]
            files.write(dict.fromkeys(names, now))
            assert [reader.read().rstrip() for reader in readers] == [before] * 3
        assert [tree.text(name) for name in names] == [now] * 3
        before = now
