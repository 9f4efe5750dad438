"""Control groups: the files written and read, in folders that look like the kernel's; cores."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from benchmarks.lab.cgroups import V1, V2, assign_cores, mounted
from benchmarks.lab.errors import LabError

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


def test_the_mounts_tell_the_version(tmp_path: Path) -> None:
    assert isinstance(mounted(V1_MOUNTS), V1)
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    assert isinstance(mounted(V1_MOUNTS.replace("/nowhere", str(tmp_path))), V2)
    with pytest.raises(LabError, match="no control groups for cpu, memory"):
        mounted("")


@given(some.dictionaries(some.sampled_from("abcdefg"), some.floats(0.05, 1.2)), some.integers(1, 4))
def test_no_core_is_promised_more_than_it_has(cpus: dict[str, float], cores: int) -> None:
    found = assign_cores(cpus, range(cores))
    assert not found or found.keys() == cpus.keys()
    for core in range(cores):
        assert sum(cpus[name] for name, at in found.items() if at == core) <= 1 + 1e-6
