"""Cold caches are those that a training step leaves: what follows it waits for memory."""

import time
from typing import Any, Callable, Tuple

import numpy as np

from profilers.spinning import available_cores

_MEMORY_BYTES, _CACHE_LINE_BYTES = 1 << 26, 64  # more than caches hold


class ColdCaches:
    """Memory whose reading leaves nothing else in the caches."""

    def __init__(self) -> None:
        self._memory = np.ones(_MEMORY_BYTES, np.uint8)

    def leave(self) -> None:
        """Read all of the memory."""
        self._memory[::_CACHE_LINE_BYTES].sum()


class ColdTimer:
    """Times work of one thread that begins with cold caches.

    By the processor's clock, divided by the share of a core that the device has: a quota would
    stretch a millisecond to a tenth of a second on the wall clock, or not show in it at all.
    """

    def __init__(self) -> None:
        self._caches = ColdCaches()
        self._share = min(1.0, available_cores())

    def timed(self, work: Callable[..., Any], *args: Any) -> Tuple[Any, float]:
        """What a call gives, and its seconds."""
        self._caches.leave()
        began = time.process_time()
        result = work(*args)
        return result, (time.process_time() - began) / self._share
