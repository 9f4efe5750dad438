"""A gradient after a wait takes longer: meanwhile its data and code have left the caches.

That is a matter of a millisecond at most, so that it shows in short steps: a gradient of a network
of 50 kB took 0.65 ms of a processor right after another one, 1.3 after 5 ms and 1.6 after 20.
"""

import statistics
import time
from typing import Any, Callable, List

from profilers.cores import thread_cpu_s

#: Seconds of a wait, as members of a cluster wait for an exchange.
WAIT_S = 0.02
#: Seconds in which gradients are computed without waits, and with waits, by turns: several periods
#: of a quota, which makes pauses of its own.
TURN_S = 0.15
#: Turns of either kind, and seconds for all but the fewest.
FEWEST, MOST, LIMIT_S = 2, 6, 2.0
#: Of a gradient of so many seconds no millisecond counts.
LONG_S = 0.5


def measure(gradient: Callable[[], Any]) -> float:
    """Processor seconds that a wait adds to a gradient, by the clock of its thread."""
    began_s = time.monotonic()
    gradient()
    if time.monotonic() - began_s > LONG_S:
        return 0.0
    more_s: List[float] = []
    while len(more_s) < FEWEST or (len(more_s) < MOST and time.monotonic() - began_s < LIMIT_S):
        gradient()
        usual_s = _mean_s(gradient, 0.0)
        more_s.append(_mean_s(gradient, WAIT_S) - usual_s)
    return max(0.0, statistics.median(more_s))


def _mean_s(gradient: Callable[[], Any], wait_s: float) -> float:
    """Processor seconds of a gradient, each after a wait."""
    taken_s: List[float] = []
    began_s = time.monotonic()
    while not taken_s or time.monotonic() - began_s < TURN_S:
        time.sleep(wait_s)
        before_s = thread_cpu_s()
        gradient()
        taken_s.append(thread_cpu_s() - before_s)
    return statistics.mean(taken_s)
