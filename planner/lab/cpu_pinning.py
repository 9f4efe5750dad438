"""Each device is pinned to one core of the machine.

The scheduler may let two devices share a core although another is free. If their quotas exceed a
core together, they then get less than their quotas.
"""

import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path


def assign_cores(cpus: Mapping[str, float], cores: Collection[int]) -> dict[str, int]:
    """The core of each device, the largest first; empty where one core is not enough for each.

    cpus: number of cores by device
    """
    left = dict.fromkeys(cores, 1.0)
    assigned = {}
    for name, share in sorted(cpus.items(), key=lambda each: -each[1]):
        core = max(left, key=lambda core: left[core])
        left[core] -= share
        if left[core] < -1e-9:
            return {}
        assigned[name] = core
    return assigned


def pin(process: int, cores: Collection[int]) -> None:
    """Restrict all threads of a process, and its later children, to these cores."""
    for thread in Path(f"/proc/{process}/task").glob("*"):
        with suppress(ProcessLookupError):
            os.sched_setaffinity(int(thread.name), cores)
