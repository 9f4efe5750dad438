"""A clock tells for how long a member has been at the same gradient, evaluation or exchange.

It is also where a device is slowed down that stands for a slower one: whatever computes runs under
its replica's clock, which pauses when that ends, and waits for other members do not.
"""

import time
from typing import Callable, Optional

from backends.frameworks.base import Replica


class ComputeClock:
    """One thread at a time begins and ends, by ``with`` or ``begin``; others read.

    longest_s: seconds of the longest gradient, batch of an evaluation or exchange that has ended.
    slowdown: how many times as long as it computes a slowed device takes, its pauses included.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        slowdown: float = 1.0,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock = clock
        self.slowdown = slowdown
        self._pause = pause
        self._since: Optional[float] = None
        self.longest_s: Optional[float] = None

    def __enter__(self) -> "ComputeClock":
        self.begin()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def begin(self) -> None:
        """Another one begins; the one before it, if any, has ended."""
        self.end()
        self._since = self._clock()

    def allow(self, seconds: float) -> None:
        """Let the next one take as long as if so many seconds had been the longest."""
        self.longest_s = max(self.longest_s or 0.0, seconds)

    def end(self) -> None:
        """Nothing is computed from here on; a slowed device pauses first."""
        since, self._since = self._since, None
        if since is None:
            return
        computed_s = self._clock() - since
        self.allow(computed_s)
        if self.slowdown > 1.0:
            self._pause(computed_s * (self.slowdown - 1.0))

    def waits(self, for_others: bool) -> None:
        """Others are waited for, which is not computing, or no longer."""
        if for_others:
            self.end()
        else:
            self.begin()

    def seconds(self) -> float:
        """Since the one under way has begun; 0 where there is none."""
        since = self._since
        return 0.0 if since is None else self._clock() - since


def clock_of(replica: Replica) -> ComputeClock:
    """The clock of a replica, the same for as long as it lives."""
    made: ComputeClock = replica.__dict__.setdefault("_compute_clock", ComputeClock())
    return made
