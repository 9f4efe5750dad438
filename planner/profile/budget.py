"""A budget is the time that profiling may take; it remembers what there was no time for."""

import math
import time
from collections.abc import Callable

from planner.units import seconds


class Budget:
    """Begins when it is made. limit_s: None for no limit."""

    def __init__(self, limit_s: float | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit_s = math.inf if limit_s is None else limit_s
        self._clock, self._began_s = clock, clock()
        self._left_out: list[str] = []

    @property
    def spent_s(self) -> float:
        """Seconds that profiling has taken."""
        return self._clock() - self._began_s

    @property
    def is_spent(self) -> bool:
        """Whether nothing more is to be begun."""
        return self.spent_s >= self._limit_s

    def allows(self, what: str) -> bool:
        """Whether there is time to measure something, which is told as left out otherwise."""
        if self.is_spent:
            self._left_out.append(what)
        return not self.is_spent

    @property
    def reason(self) -> str:
        """Why something was not measured, and what to do."""
        return f"the budget of {seconds(self._limit_s)} is spent; run `planner profile` again to measure the rest"

    @property
    def told(self) -> str | None:
        """A line about all that was left out; None where nothing was."""
        return f"{self.reason}: {', '.join(sorted(self._left_out))}" if self._left_out else None
