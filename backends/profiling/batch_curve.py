"""A step's time is a curve over the batch size: it is timed at a few sizes besides the planned one.

Smaller sizes are cheap. The double size takes as long as a quarter of the fewest steps that the
planned one is timed for, and is left out where the profile's time is short.
"""

from typing import Callable, List, Optional, Tuple

from profilers.records.readings import Samples
from profilers.records.steps import BatchTiming

#: Steps at a smaller size, and at the double one: those of the warm-up, and those that count.
SMALLER_STEPS = (3, 12)
LARGER_STEPS = (1, 5)
#: Does the work of a batch size, or returns None where it cannot.
Attempt = Callable[[int, Callable[[], BatchTiming]], Optional[BatchTiming]]

#: Smallest size: of a single image batch normalisation cannot learn.
LEAST = 2


def smaller_sizes(batch: int) -> Tuple[int, ...]:
    """Half and a quarter of a batch size, as far as they are not too small."""
    return tuple(size for size in (batch // 2, batch // 4) if size >= LEAST)


def larger_size(batch: int) -> int:
    """The double batch size."""
    return 2 * batch


def remaining_steps(batch: int, with_larger: bool) -> float:
    """How many steps at the planned batch size take as long as those at all others."""
    images = sum(SMALLER_STEPS) * sum(smaller_sizes(batch))
    if with_larger:
        images += sum(LARGER_STEPS) * larger_size(batch)
    return images / float(batch)


def measure(
    step_at: Callable[[int], Callable[[], float]], batch: int, has_time: Callable[[], bool], attempt: Attempt
) -> Tuple[BatchTiming, ...]:
    """Time gradients at the other sizes, from the half one on.

    step_at: gives a function that makes a step at a size and returns its gradient's seconds.
    has_time: whether the double size may be timed, too.
    attempt: does the work of a size, or returns None where that does not fit into the memory.
    """
    found = [_timed(step_at(size), size, SMALLER_STEPS) for size in smaller_sizes(batch)]
    if has_time():
        size = larger_size(batch)
        larger = attempt(size, lambda: _timed(step_at(size), size, LARGER_STEPS))
        found += [] if larger is None else [larger]
    return tuple(found)


def _timed(step: Callable[[], float], size: int, steps: Tuple[int, int]) -> BatchTiming:
    warmup, counted = steps
    times: List[float] = [step() for _ in range(warmup + counted)]
    return BatchTiming(size, Samples("s", tuple(times[warmup:]), tuple(times[:warmup])))
