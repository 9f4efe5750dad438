"""A step's time is a curve over the batch size: a few sizes besides the planned one are timed."""

import time
from typing import Callable, List, Optional, Tuple

from profilers.records.readings import Samples
from profilers.records.steps import BatchTiming

#: Steps of a size that count, after one that warms up, and seconds for all but the fewest.
FEWEST, MOST = 2, 12
LIMIT_S = 0.2
#: Does the work of a batch size, or returns None where it cannot.
Attempt = Callable[[int, Callable[[], BatchTiming]], Optional[BatchTiming]]

#: Smallest size: of a single image batch normalisation cannot learn.
LEAST = 2


def smaller_sizes(batch: int) -> Tuple[int, ...]:
    """Half and a quarter of a batch size, as far as they are not too small."""
    return tuple(size for size in (batch // 2, batch // 4) if size >= LEAST)


def measure(
    step_at: Callable[[int], Callable[[], float]],
    batch: int,
    with_larger: bool,
    attempt: Attempt,
    clock: Callable[[], float] = time.monotonic,
) -> Tuple[BatchTiming, ...]:
    """Time gradients at the other sizes, from the half one on.

    step_at: gives a function that makes a step at a size and returns its gradient's seconds.
    with_larger: whether to time the double size, too.
    attempt: does the work of a size, or returns None where that does not fit into the memory.
    """
    found = [timed(step_at(size), size, clock) for size in smaller_sizes(batch)]
    if with_larger:
        size = 2 * batch
        larger = attempt(size, lambda: timed(step_at(size), size, clock))
        found += [] if larger is None else [larger]
    return tuple(found)


def timed(step: Callable[[], float], size: int, clock: Callable[[], float] = time.monotonic) -> BatchTiming:
    """A few gradients of a size, after one that warms up.

    step: makes one and returns its seconds.
    """
    warmup = (step(),)
    times: List[float] = []
    began_s = clock()
    while len(times) < FEWEST or (len(times) < MOST and clock() - began_s < LIMIT_S):
        times.append(step())
    return BatchTiming(size, Samples("s", tuple(times), warmup))
