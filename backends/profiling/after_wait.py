"""A gradient after a wait takes longer than one in a row: others have used the caches meanwhile.

With a network of 50 kB it took 0.2 ms of a processor longer than 0.6 ms after 5 ms; with one of
1 MB, whose gradients took 38 ms, nothing was to be seen (docs/results.md).
"""

import statistics
import time
from typing import Any, Callable, List

from profilers.cores import thread_cpu_s
from profilers.spinning import available_cores

#: Seconds of a wait, as for a message on a fast link.
WAIT_S = 0.005
#: Pairs of gradients, and seconds for all but the fewest.
FEWEST, MOST = 5, 20
LIMIT_S = 1.0
#: Processor seconds of gradients that vary by more than a wait changes them.
LONG_S = 0.01


def measure(gradient: Callable[[], Any]) -> float:
    """Seconds more after a wait, by the clock of this thread; 0 where gradients are long."""
    row_s: List[float] = []
    after_s: List[float] = []
    began_s = time.monotonic()
    while len(after_s) < FEWEST or (len(after_s) < MOST and time.monotonic() - began_s < LIMIT_S):
        gradient()
        row_s.append(_cpu_s(gradient))
        if row_s[0] > LONG_S:
            return 0.0
        time.sleep(WAIT_S)
        after_s.append(_cpu_s(gradient))
    more_s = statistics.median(after_s) - statistics.median(row_s)
    return max(0.0, more_s) / min(1.0, available_cores())


def _cpu_s(gradient: Callable[[], Any]) -> float:
    began_s = thread_cpu_s()
    gradient()
    return thread_cpu_s() - began_s
