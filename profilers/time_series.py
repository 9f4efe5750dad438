"""What one reader says over a window, read by read."""

import functools
import time
from typing import Callable, List, Optional, Sequence, Tuple

from profilers.file_tree import Unavailable, fail

TOO_SHORT = "the window was too short to sample it"
#: What is remembered of the windows before, so that a flaw shows that is longer than a window.
MEMORY_S = 30.0


class TimeSeries:
    """What one reader said and when (monotonic seconds), and how often it failed.

    counts_joules: it says joules so far, not a value now; before: the same reader's series of the window before.
    """

    def __init__(
        self, read: Callable[[], float], counts_joules: bool = False, before: Optional["TimeSeries"] = None
    ) -> None:
        self._read = read
        self.counts_joules = counts_joules
        self._past = before.remembered() if before else ([], [])
        self.times_s: List[float] = []
        self.values: List[float] = []
        self.failures = 0
        self._reason = TOO_SHORT

    @classmethod
    def of(
        cls, samples: Sequence[Tuple[float, float]], past: Sequence[Tuple[float, float]], reason: str
    ) -> "TimeSeries":
        """Of (time, value) that are known already, in the window and before it; ``reason``: why it is not usable
        where there are none in it.
        """
        made = cls(functools.partial(fail, reason))
        made._past = [at_s for at_s, _ in past], [value for _, value in past]
        made.times_s, made.values = [at_s for at_s, _ in samples], [value for _, value in samples]
        made._reason = reason
        return made

    def take(self) -> None:
        try:
            value = self._read()
        except Unavailable as error:
            self.failures += 1
            self._reason = str(error)
        else:
            self.times_s.append(time.monotonic())
            self.values.append(value)

    def remembered(self) -> Tuple[List[float], List[float]]:
        """Times and values of this window, and of the time before it as far back as MEMORY_S from its first read."""
        times_s, values = self._past
        oldest_s = self.times_s[0] - MEMORY_S if self.times_s else 0.0
        kept = [pair for pair in zip(times_s, values) if pair[0] >= oldest_s]
        return [at_s for at_s, _ in kept] + self.times_s, [value for _, value in kept] + self.values

    @property
    def usable(self) -> bool:
        """Whether it answered, and at least as often as it failed."""
        return bool(self.values) and len(self.values) >= self.failures

    @property
    def reason(self) -> Optional[str]:
        """Why it is not usable, or what was wrong although it is; None if nothing was."""
        if self.failures and self.values:
            reads = self.failures + len(self.values)
            return "%d of %d reads failed: %s" % (self.failures, reads, self._reason)
        return None if self.values else self._reason
