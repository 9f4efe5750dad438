"""Processor seconds that threads of this process have used, and work that is timed by them."""

import contextlib
import os
import time
from typing import Any, Callable, Dict, FrozenSet, Iterable, Tuple

from profilers import cpu_quota


def thread_ids() -> FrozenSet[int]:
    """The system's numbers of the threads of this process; none where it does not tell."""
    try:
        return frozenset(map(int, os.listdir("/proc/self/task")))
    except OSError:
        return frozenset()


def cpu_s_by_thread(threads: Iterable[int]) -> Dict[int, float]:
    """Processor seconds of those of these threads of this process that still live."""
    found = {}
    for thread in threads:
        with contextlib.suppress(OSError):
            # Linux's name of another thread's clock: MAKE_THREAD_CPUCLOCK, CPUCLOCK_SCHED.
            found[thread] = time.clock_gettime((~thread << 3) | 6)
    return found


def thread_cpu_s() -> float:
    """Processor seconds of this thread; finer than getrusage, which may count clock ticks."""
    return time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)  # time.thread_time is of Python 3.7


def timed(work: Callable[..., Any], *args: Any) -> Tuple[Any, float]:
    """What a call gives, and its seconds.

    By the clock of its thread, for those of a framework may spin on after a gradient. Divided by
    the share of a core that the device has: a quota would stretch a millisecond to a tenth of a
    second on the wall clock, or not show in it at all.
    """
    began = thread_cpu_s()
    result = work(*args)
    return result, (thread_cpu_s() - began) / min(1.0, cpu_quota.usable_cores())
