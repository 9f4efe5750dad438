"""Cold caches are those that a training step leaves: what follows it waits for memory."""

import time
from typing import Any, Callable, Tuple

import numpy as np

from profilers.cores import thread_cpu_s
from profilers.spinning import available_cores

_MEMORY_BYTES, _CACHE_LINE_BYTES = 1 << 26, 64  # more than caches hold


class ColdCaches:
    """Memory whose reading leaves nothing else in the caches."""

    def __init__(self) -> None:
        self._memory = np.ones(_MEMORY_BYTES, np.uint8)

    def leave(self) -> None:
        """Read all of the memory."""
        self._memory[::_CACHE_LINE_BYTES].sum()


def as_steps_leave(gradient: Callable[[], Any]) -> Callable[[], Any]:
    """A gradient, or what leaves the caches about as one does where that takes less time."""
    caches = ColdCaches()
    return min(gradient, caches.leave, key=_cpu_s)


def _cpu_s(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


class ColdTimer:
    """Times work of one thread that begins with the caches that ``leave`` leaves.

    By the clock of its thread, for those of a framework may spin on after a gradient. Divided by
    the share of a core that the device has: a quota would stretch a millisecond to a tenth of a
    second on the wall clock, or not show in it at all.
    """

    def __init__(self, leave: Callable[[], Any]) -> None:
        self._leave = leave
        self._share = min(1.0, available_cores())

    def timed(self, work: Callable[..., Any], *args: Any) -> Tuple[Any, float]:
        """What a call gives, and its seconds."""
        self._leave()
        began = thread_cpu_s()
        result = work(*args)
        return result, (thread_cpu_s() - began) / self._share
