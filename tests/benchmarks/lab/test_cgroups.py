"""Control groups: the files written and read, in folders that look like the kernel's; cores."""

import errno
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from benchmarks.lab.cgroups import V1, V2, assign_cores, mounted, pin
from benchmarks.lab.errors import LabError
from tests.running import HANG_S

GROUP = "planner-lab-x/tx2"
V1_MOUNTS = """\
49 48 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
50 49 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
53 49 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
59 49 0:38 / /nowhere rw,relatime - cgroup2 cgroup2 rw
"""


@pytest.fixture
def v1(tmp_path: Path) -> V1:
    groups = V1(tmp_path / "cpu", tmp_path / "memory")
    groups.make(GROUP)
    return groups


@pytest.fixture
def v2(tmp_path: Path) -> V2:
    groups = V2(tmp_path)
    groups.make(GROUP)
    return groups


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


def test_version_1(v1: V1, tmp_path: Path) -> None:
    v1.set_cpus(GROUP, 0.25)
    v1.set_memory(GROUP, 10**9)
    cpu, memory = tmp_path / "cpu" / GROUP, tmp_path / "memory" / GROUP
    assert (cpu / "cpu.cfs_period_us").read_text() == "5000"
    assert (cpu / "cpu.cfs_quota_us").read_text() == "1250"
    assert (memory / "memory.limit_in_bytes").read_text() == "1000000000"
    v1.set_memory(GROUP, None)
    assert (memory / "memory.limit_in_bytes").read_text() == "-1"
    assert v1.procs_files(GROUP) == [cpu / "cgroup.procs", memory / "cgroup.procs"]


def test_version_2(v2: V2, tmp_path: Path) -> None:
    folder = tmp_path / GROUP
    v2.set_cpus(GROUP, 1.5)
    v2.set_memory(GROUP, 10**9)
    assert (folder / "cpu.max").read_text() == "7500 5000"
    assert (folder / "memory.max").read_text() == "1000000000"
    v2.set_memory(GROUP, None)
    assert (folder / "memory.max").read_text() == "max"


def test_version_2_hands_the_controllers_down_to_the_device(v2: V2, tmp_path: Path) -> None:
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+cpu +memory"
    assert (tmp_path / "planner-lab-x" / "cgroup.subtree_control").read_text() == "+cpu +memory"
    assert not (tmp_path / GROUP / "cgroup.subtree_control").exists()


def test_processes_of_groups_within_count(v2: V2, tmp_path: Path) -> None:
    inner = tmp_path / GROUP / "inner"
    inner.mkdir()
    (tmp_path / GROUP / "cgroup.procs").write_text("12\n13\n")
    (inner / "cgroup.procs").write_text("14\n")
    assert sorted(v2.processes(GROUP)) == [12, 13, 14]
    assert v2.processes("planner-lab-y") == []


def test_a_signal_reaches_every_process(v2: V2, tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    (tmp_path / GROUP / "cgroup.procs").write_text(f"{sleeper.pid}\n")
    v2.signal(GROUP, signal.SIGSTOP)
    _, status = os.waitpid(sleeper.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)


def test_a_process_that_does_not_end_is_named(
    v2: V2, tmp_path: Path, sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.lab.cgroups._PATIENCE_S", 0.1)
    (tmp_path / GROUP / "cgroup.procs").write_text(f"{sleeper.pid}\n")
    with pytest.raises(LabError, match=rf"processes \[{sleeper.pid}\] do not end"):
        v2.end(GROUP)
    assert sleeper.wait(HANG_S) == -signal.SIGKILL


def test_a_group_is_removed_with_those_in_it(v1: V1, tmp_path: Path) -> None:
    assert v1.exists("planner-lab-x")
    v1.remove("planner-lab-x")
    assert not v1.exists("planner-lab-x")
    assert not list(tmp_path.rglob("planner-lab-x"))
    v1.remove("planner-lab-x")


def test_a_file_that_does_not_take_the_value_is_named(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"cpu\.max: does not take"):
        V2(tmp_path).set_cpus("nothing/here", 1.0)


def test_groups_that_hold_processes_themselves_are_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(file: Path, text: str) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy", str(file))

    monkeypatch.setattr(Path, "write_text", refuse)  # as the kernel does, which no folder of a test can
    with pytest.raises(LabError, match=f"{tmp_path}: this control group holds processes, as a container's does; mo"):
        V2(tmp_path).make(GROUP)


def test_version_2_needs_both_controllers(tmp_path: Path) -> None:
    mounts = V1_MOUNTS.replace("/nowhere", str(tmp_path))
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io\n")
    assert isinstance(mounted(mounts), V1)
    with pytest.raises(LabError, match=f"{tmp_path}: these control groups have no memory controller; boot with"):
        mounted(mounts.splitlines()[-1])


def test_the_mounts_tell_the_version(tmp_path: Path) -> None:
    assert isinstance(mounted(V1_MOUNTS), V1)
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    assert isinstance(mounted(V1_MOUNTS.replace("/nowhere", str(tmp_path))), V2)
    with pytest.raises(LabError, match="no control groups for cpu, memory"):
        mounted("")


def test_the_largest_has_a_core_of_its_own_and_the_others_share_what_is_left() -> None:
    assert assign_cores({"tx1": 0.2, "pc": 0.8, "tx2": 0.4}, [0, 1]) == {"pc": 0, "tx2": 1, "tx1": 1}


def test_whoever_does_not_fit_leaves_all_of_them_to_the_scheduler() -> None:
    assert assign_cores({"a": 1.5, "b": 0.1}, [0, 1]) == {}
    assert assign_cores({"a": 0.7, "b": 0.7, "c": 0.6}, [0, 1]) == {}


@given(some.dictionaries(some.sampled_from("abcdefg"), some.floats(0.05, 1.2)), some.integers(1, 4))
def test_no_core_is_promised_more_than_it_has(cpus: dict[str, float], cores: int) -> None:
    found = assign_cores(cpus, range(cores))
    assert not found or found.keys() == cpus.keys()
    for core in range(cores):
        assert sum(cpus[name] for name, at in found.items() if at == core) <= 1 + 1e-6


def test_a_pinned_process_keeps_to_its_core() -> None:
    core = min(os.sched_getaffinity(0))
    process = subprocess.Popen(["sleep", "60"])
    try:
        pin(process.pid, {core})
        assert os.sched_getaffinity(process.pid) == {core}
    finally:
        process.kill()
        process.wait()
    pin(process.pid, {core})  # one that has gone is no matter
