"""This measures how much shorter a computation is after a wait, in a container with a quota.

    python benchmarks/quota_after_wait.py                     # root, control groups of version 1

Processor time of several quotas is used at once, in a group with a quota of so many cores in each
period: without a pause before it, and after waits of several periods. Shown is by how many periods
it takes less than at the pace of the quota, beside what is predicted
(``planner.predict.device_costs``).
"""

import hashlib
import os
import random
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
from reporting import parser, show

from planner.predict.device_costs import saved_by_wait_s

GROUP = Path("/sys/fs/cgroup/cpu/quota-after-wait")
#: Cores and seconds of a period, as labs and containers have them.
QUOTAS = ((0.16, 0.0078), (0.25, 0.005), (0.36, 0.005), (0.5, 0.1))
#: Quotas that a computation uses, and periods that it waits before.
WORK, WAITS = (2, 5, 12), (0.0, 1.0, 5.0)
BLOCK = bytes(1 << 15)


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--seconds", type=float, default=1.2, help="of each row, six times as long at 100 ms")
    options = arguments.parse_args()
    GROUP.mkdir(exist_ok=True)
    (GROUP / "cgroup.procs").write_text(str(os.getpid()))
    os.sched_setaffinity(0, {0})
    try:
        rows = [_row(*quota, work, options.seconds) for quota in QUOTAS for work in WORK]
    finally:
        (GROUP.parent / "cgroup.procs").write_text(str(os.getpid()))
        GROUP.rmdir()
    show("periods saved", rows, options.json)


def _row(cores: float, period_s: float, work: int, seconds: float) -> dict[str, Any]:
    for name, value in (("quota", -1.0), ("period", period_s), ("quota", cores * period_s)):
        (GROUP / f"cpu.cfs_{name}_us").write_text(str(round(1e6 * value) if value > 0 else -1))
    work_s = work * cores * period_s
    seconds *= 6 if period_s > 0.05 else 1
    saved = {f"after {wait:g}": _saved(work_s, work_s / cores, wait * period_s, seconds) / period_s for wait in WAITS}
    predicted = float(saved_by_wait_s(np.array(cores), np.array(period_s))) / period_s
    return {"cores": cores, "period, ms": 1e3 * period_s, "quotas": work, **saved, "predicted": predicted}


def _saved(work_s: float, throttled_s: float, wait_s: float, seconds: float) -> float:
    """Seconds by which computations are shorter than at the pace of the quota, on average."""
    _compute(3 * work_s)
    taken_s, end_s = [], time.monotonic() + seconds
    while time.monotonic() < end_s:
        if wait_s:
            time.sleep(wait_s * (0.5 + random.random()))
        began_s = time.monotonic()
        _compute(work_s)
        taken_s.append(time.monotonic() - began_s)
    return throttled_s - statistics.fmean(taken_s)


def _compute(cpu_s: float) -> None:
    began_s = time.thread_time()
    while time.thread_time() - began_s < cpu_s:
        hashlib.sha256(BLOCK).digest()


if __name__ == "__main__":
    main()
