"""This module computes how many processor cores the process may use, and what a thread has used.

Affinity and the quotas of the process's cgroups and their ancestors limit the cores.
"""

import os
import posixpath
import time
from typing import Dict, List, NamedTuple, Optional

from profilers.file_tree import FileTree, Unavailable


class Mount(NamedTuple):
    """A mounted cgroup hierarchy; controllers is empty for version 2."""

    root: str
    point: str
    controllers: str


def parse_membership(text: str) -> Dict[str, str]:
    """Parse /proc/self/cgroup into the path of each controller; "" stands for version 2."""
    paths = {}
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            paths[controller] = path
    return paths


def parse_mounts(text: str) -> List[Mount]:
    """Parse /proc/self/mountinfo into the cgroup mounts that may hold a processor quota."""
    mounts = []
    for line in text.splitlines():
        left, _, right = line.partition(" - ")
        fields, (kind, _, options) = left.split(), right.split(" ", 2)
        if kind == "cgroup2":
            mounts.append(Mount(fields[3], fields[4], ""))
        elif kind == "cgroup" and "cpu" in options.split(","):
            mounts.append(Mount(fields[3], fields[4], "cpu"))
    return mounts


def parse_cpu_max(text: str) -> Optional[float]:
    """Parse cpu.max of version 2, "50000 100000" for 0.5 cores; None for no limit."""
    quota, period = text.split()
    return None if quota == "max" else int(quota) / int(period)


def parse_cfs(quota_us: int, period_us: int) -> Optional[float]:
    """Cores of a version 1 quota; None for a negative one, which is no limit."""
    return None if quota_us < 0 or period_us <= 0 else quota_us / period_us


def folders(mount: Mount, path: str) -> List[str]:
    """Folders of a cgroup and its ancestors that this mount shows, deepest first."""
    inside = posixpath.relpath(path, mount.root)
    outside = inside.startswith("..") or path.startswith("/..")  # of the mount, or of the namespace
    here = "" if inside == "." or outside else inside
    found = [posixpath.join(mount.point, here)] if here else []
    while posixpath.dirname(here):
        here = posixpath.dirname(here)
        found.append(posixpath.join(mount.point, here))
    return found + [mount.point]


def quota_cores(tree: FileTree) -> Optional[float]:
    """The smallest quota of the process's cgroups and their ancestors, in cores, or None."""
    try:
        paths = parse_membership(tree.text("proc/self/cgroup"))
        mounts = parse_mounts(tree.text("proc/self/mountinfo"))
    except Unavailable:
        return None
    quotas = [
        _quota(tree, folder.lstrip("/"), mount.controllers)
        for mount in mounts
        if mount.controllers in paths
        for folder in folders(mount, paths[mount.controllers])
    ]
    return min((quota for quota in quotas if quota is not None), default=None)


def usable_cores(root: str = "/") -> float:
    """Cores the process may use, possibly a fraction: its affinity or its quota, if smaller."""
    quota = quota_cores(FileTree(root))
    cores = float(affinity())
    return cores if quota is None else min(cores, quota)


def affinity() -> int:
    """Cores on which the scheduler may run the process."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _quota(tree: FileTree, folder: str, controllers: str) -> Optional[float]:
    try:
        if controllers == "":
            return parse_cpu_max(tree.text(folder + "/cpu.max"))
        return parse_cfs(tree.number(folder + "/cpu.cfs_quota_us"), tree.number(folder + "/cpu.cfs_period_us"))
    except Unavailable:  # the root has no quota files, nor has a cgroup without the controller
        return None


def thread_cpu_s() -> float:
    """Processor seconds of this thread; finer than getrusage, which may count clock ticks."""
    return time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)  # time.thread_time is of Python 3.7
