"""This module tells the processor seconds that threads of this process have used."""

import contextlib
import os
import time
from typing import Dict, FrozenSet, Iterable


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
