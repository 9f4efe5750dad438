"""This module computes how many processor cores the process may use.

Affinity and the quotas of the process's cgroups and their ancestors limit the cores.
"""

import os
from typing import Optional

from profilers import bsd, cgroups
from profilers.file_tree import FileTree, Unavailable


def parse_cpu_max(text: str) -> Optional[float]:
    """Parse cpu.max of version 2, "50000 100000" for 0.5 cores; None for no limit."""
    quota, period = text.split()
    return None if quota == "max" else int(quota) / int(period)


def parse_cfs(quota_us: int, period_us: int) -> Optional[float]:
    """Cores of a version 1 quota; None for a negative one, which is no limit."""
    return None if quota_us < 0 or period_us <= 0 else quota_us / period_us


def quota_cores(tree: FileTree) -> Optional[float]:
    """The smallest quota of the process's cgroups and their ancestors, in cores, or None."""
    quotas = [_quota(tree, folder, is_v2) for folder, is_v2 in cgroups.limiting(tree, "cpu")]
    return min((quota for quota in quotas if quota is not None), default=None)


def usable_cores(root: str = "/") -> float:
    """Cores the process may use, possibly a fraction: its affinity or its quota, if smaller."""
    quota = quota_cores(FileTree(root))
    cores = float(affinity())
    return cores if quota is None else min(cores, quota)


def affinity() -> int:
    """Cores on which the scheduler may run the process; of an Apple processor the faster ones.

    To these torch keeps as well: a thread on a slow core would hold up the others.
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return bsd.host().performance_cores or os.cpu_count() or 1


def _quota(tree: FileTree, folder: str, is_v2: bool) -> Optional[float]:
    try:
        if is_v2:
            return parse_cpu_max(tree.text(folder + "/cpu.max"))
        return parse_cfs(tree.number(folder + "/cpu.cfs_quota_us"), tree.number(folder + "/cpu.cfs_period_us"))
    except Unavailable:  # the root has no quota files, nor has a cgroup without the controller
        return None
