"""The rate of a stream is measured from what arrives."""

import collections
import time
from typing import Callable, Deque, Optional, Tuple

#: Seconds over which arrivals are counted: a rate that changes shows within this time.
WINDOW_S = 5.0
#: Seconds without which there is no rate yet.
LEAST_S = 1.0


class ArrivalRate:
    """Samples a second, over the last ``WINDOW_S`` seconds.

    clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began_s = clock()
        self._arrivals: Deque[Tuple[float, int]] = collections.deque()
        self._count = 0

    def add(self, count: int) -> None:
        """So many samples have arrived now."""
        self._arrivals.append((self._clock(), count))
        self._count += count

    def per_second(self) -> Optional[float]:
        """The rate; None before it was measured for ``LEAST_S``."""
        now_s = self._clock()
        while self._arrivals and self._arrivals[0][0] <= now_s - WINDOW_S:
            self._count -= self._arrivals.popleft()[1]
        lasted_s = min(WINDOW_S, now_s - self._began_s)
        return None if lasted_s < LEAST_S else self._count / lasted_s
