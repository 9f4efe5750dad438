"""A clock tells for how long a member has been at the same gradient, evaluation or exchange.

It is also where a device is slowed down that stands for a slower one: whatever computes runs under
its replica's clock, which pauses when that ends, and waits for other members do not.
"""

import math
import time
from typing import Callable, Dict, Optional, Tuple

from backends.frameworks.base import Replica

#: What a clock may time.
STEP, EVALUATION, EXCHANGE = "a step", "a batch of an evaluation", "an exchange"


class ComputeClock:
    """One thread at a time begins and ends, by ``with`` or ``begin``; others read.

    what: it times, where ``begin`` names nothing else.
    slowdown: how many times as long as it computes a slowed device takes, its pauses included.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        slowdown: float = 1.0,
        pause: Callable[[float], None] = time.sleep,
        what: str = STEP,
    ) -> None:
        self._clock = clock
        self.slowdown = slowdown
        self._pause = pause
        self._what = what
        self._began: Optional[Tuple[str, float]] = None  # what is under way, and since when
        self._longest_s: Dict[str, float] = {}

    def __enter__(self) -> "ComputeClock":
        self.begin()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def begin(self, what: Optional[str] = None) -> None:
        """Another one begins; the one before it, if any, has ended."""
        self.end()
        self._began = what or self._what, self._clock()

    def allow(self, seconds: float, what: Optional[str] = None) -> None:
        """Let the next one take as long as if so many seconds had been the longest."""
        kind = what or self._what
        self._longest_s[kind] = max(self._longest_s.get(kind, 0.0), seconds)

    def end(self) -> None:
        """Nothing is computed from here on; a slowed device pauses first."""
        began, self._began = self._began, None
        if began is None:
            return
        computed_s = self._clock() - began[1]
        self.allow(computed_s, began[0])
        if self.slowdown > 1.0:
            self._pause(computed_s * (self.slowdown - 1.0))

    def waits(self, for_others: bool) -> None:
        """Others are waited for, which is not computing, or no longer."""
        if for_others:
            self.end()
        else:
            self.begin()

    def under_way(self) -> Tuple[str, float, Optional[float]]:
        """What is under way, its seconds so far, and those of the longest of its kind before it."""
        what, since = self._began or (self._what, math.inf)
        return what, max(0.0, self._clock() - since), self._longest_s.get(what)


def clock_of(replica: Replica) -> ComputeClock:
    """The clock of a replica, the same for as long as it lives."""
    made: ComputeClock = replica.__dict__.setdefault("_compute_clock", ComputeClock())
    return made
