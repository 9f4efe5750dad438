"""Which core of the machine each device computes on.

Left to the scheduler, two devices whose quotas together exceed a core share one for a while although another is free,
and get less than they were promised.
"""

import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path


def packed(cpus: Mapping[str, float], cores: Collection[int]) -> dict[str, int]:
    """The core of each device, none of which is promised more than it has; nobody's where they do not all fit so.

    cpus: cores of the machine by device. The largest first, each onto the core with most left.
    """
    left = dict.fromkeys(cores, 1.0)
    found = {}
    for name, wanted in sorted(cpus.items(), key=lambda each: -each[1]):
        core = max(left, key=lambda core: left[core])
        left[core] -= wanted
        if left[core] < -1e-9:
            return {}
        found[name] = core
    return found


def pin(process: int, cores: Collection[int]) -> None:
    """Have all threads of a process, and what it starts from now on, compute on these cores only."""
    for thread in Path(f"/proc/{process}/task").glob("*"):
        with suppress(ProcessLookupError):
            os.sched_setaffinity(int(thread.name), cores)
