"""Quotas of cgroup versions 1 and 2 count along all ancestors, as recorded on real systems."""

import pytest

from profilers import cgroups, cpu_quota
from profilers.file_tree import FileTree

V2_MOUNT = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
V1_MOUNT = "33 25 0:29 {root} /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct\n"
OTHERS = "24 30 0:22 / /proc rw - proc proc rw\n34 25 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"


@pytest.fixture
def machine(tmp_path):
    def build(cgroup, mountinfo, **quotas):
        files = {"proc/self/cgroup": cgroup, "proc/self/mountinfo": mountinfo, **quotas}
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return FileTree(tmp_path)

    return build


def test_version_2_takes_the_smallest_quota_of_all_ancestors(machine):
    tree = machine(
        "0::/user.slice/job.scope\n",
        OTHERS + V2_MOUNT,
        **{
            "sys/fs/cgroup/user.slice/job.scope/cpu.max": "max 100000\n",
            "sys/fs/cgroup/user.slice/cpu.max": "50000 20000\n",
        },
    )
    assert cpu_quota.quota_cores(tree) == 2.5


def test_version_1_reads_quota_and_period(machine):
    tree = machine(
        "4:cpu,cpuacct:/docker/abc\n3:cpuset:/\n",
        OTHERS + V1_MOUNT.format(root="/"),
        **{
            "sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us": "10000\n",
            "sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us": "20000\n",
            "sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_period_us": "100000\n",
        },
    )
    assert cpu_quota.quota_cores(tree) == 0.5


def test_in_a_container_the_mount_shows_only_the_inner_part_of_the_path(machine):
    tree = machine(
        "4:cpu,cpuacct:/docker/abc\n",
        V1_MOUNT.format(root="/docker/abc"),
        **{
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "150000\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
        },
    )
    assert cpu_quota.quota_cores(tree) == 1.5
    inner = cgroups.Mount("/docker/abc", "/c", "cpu")
    assert cgroups.folders(inner, "/docker/abc/x/y") == ["/c/x/y", "/c/x", "/c"]
    assert cgroups.folders(cgroups.Mount("/", "/c", ""), "/../outside") == ["/c"]


def test_a_quota_bounds_the_affinity(machine, tmp_path):
    machine("0::/\n", V2_MOUNT, **{"sys/fs/cgroup/cpu.max": "25000 100000"})
    assert cpu_quota.usable_cores(str(tmp_path)) == 0.25
