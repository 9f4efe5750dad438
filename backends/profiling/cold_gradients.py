"""A gradient takes longer after something else: meanwhile its data and code have left the caches.

That is a matter of a millisecond at most, so that it shows in short steps: a gradient of a network
of 50 kB took 0.65 ms of a processor right after another one, 1.3 after a wait of 5 ms and 1.6 after
20.
"""

import functools
import time
from typing import Any, Callable, List, Optional

from profilers import stats
from profilers.cores import thread_cpu_s

#: Seconds of a wait, as members of a cluster with short gradients wait for an exchange: 6 to 9 ms
#: with a network of 50 kB (benchmarks/log/earlier-audits.md).
WAIT_S = 0.005
#: Seconds in which gradients are computed one after another, and with something else before each,
#: by turns: several periods of a quota, which makes pauses of its own.
TURN_S = 0.15
#: Turns of either kind, and seconds for all but the fewest.
FEWEST, MOST, LIMIT_S = 3, 6, 2.0
#: Processor seconds from which on a gradient is too long for this: it differs from one to the next
#: by more than what is looked for.
LONG_S = 0.01


def after_wait_s(gradient: Callable[[], Any]) -> float:
    """Processor seconds that a wait adds to a gradient."""
    return added_s(gradient, functools.partial(time.sleep, WAIT_S))


def added_s(gradient: Callable[[], Any], before: Callable[[], Any]) -> float:
    """Processor seconds that ``before`` adds to a gradient, by the clock of its thread."""
    began_s = time.monotonic()
    gradient()
    if _mean_s(gradient, None) > LONG_S:
        return 0.0
    more_s: List[float] = []
    while len(more_s) < FEWEST or (len(more_s) < MOST and time.monotonic() - began_s < LIMIT_S):
        gradient()
        usual_s = _mean_s(gradient, None)
        more_s.append(_mean_s(gradient, before) - usual_s)
    return max(0.0, stats.median(more_s))


def _mean_s(gradient: Callable[[], Any], before: Optional[Callable[[], Any]]) -> float:
    """Processor seconds of a gradient, each after a call of ``before``."""
    taken_s: List[float] = []
    began_s = time.monotonic()
    while not taken_s or time.monotonic() - began_s < TURN_S:
        if before is not None:
            before()
        before_s = thread_cpu_s()
        gradient()
        taken_s.append(thread_cpu_s() - before_s)
    return stats.mean(taken_s)
