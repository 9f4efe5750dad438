"""A time series holds the values of one reader over a window."""

import functools
import time
from typing import Callable, List, Optional, Sequence, Tuple

from profilers.file_tree import Unavailable, fail

TOO_SHORT = "the window was too short to sample it"
#: Seconds of earlier windows that are remembered: a fault may take longer than a window to show.
MEMORY_S = 30.0


class TimeSeries:
    """Values of one reader with their monotonic times, and the number of failed reads.

    counts_joules: the values are joules so far instead of watts now.
    before: the series of the same reader over the window before.
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
        self._answered = False
        self._reason = TOO_SHORT

    @classmethod
    def of(
        cls, samples: Sequence[Tuple[float, float]], past: Sequence[Tuple[float, float]], reason: str
    ) -> "TimeSeries":
        """A series of known samples, each (time, value); reason: why it may be empty."""
        series = cls(functools.partial(fail, reason))
        series._past = [at_s for at_s, _ in past], [value for _, value in past]
        series.times_s, series.values = [at_s for at_s, _ in samples], [value for _, value in samples]
        series._reason = reason
        return series

    def take(self) -> None:
        try:
            value = self._read()
        except Exception as error:  # noqa: BLE001 - the library of a sensor raises what it likes, and ends no run
            self._answered = False
            self.failures += 1
            self._reason = str(error) if isinstance(error, Unavailable) else "%s: %s" % (type(error).__name__, error)
        else:
            self._answered = True
            self.times_s.append(time.monotonic())
            self.values.append(value)

    def continued(self) -> "TimeSeries":
        """The series over the next window, which begins with the last value of this one."""
        after = TimeSeries(self._read, self.counts_joules, self)
        if self._answered:
            times_s, values = after._past
            after._past = times_s[:-1], values[:-1]
            after.times_s, after.values = times_s[-1:], values[-1:]
        return after

    def remembered(self) -> Tuple[List[float], List[float]]:
        """Times and values of this window and of the MEMORY_S before its first read."""
        times_s, values = self._past
        oldest_s = self.times_s[0] - MEMORY_S if self.times_s else 0.0
        recent = [pair for pair in zip(times_s, values) if pair[0] >= oldest_s]
        return [at_s for at_s, _ in recent] + self.times_s, [value for _, value in recent] + self.values

    @property
    def usable(self) -> bool:
        """Whether the reader answered, and at least as often as it failed."""
        return bool(self.values) and len(self.values) >= self.failures

    @property
    def reason(self) -> Optional[str]:
        """Why the series is not usable, or why some reads failed; None without failures."""
        if self.failures and self.values:
            reads = self.failures + len(self.values)
            return "%d of %d reads failed: %s" % (self.failures, reads, self._reason)
        return None if self.values else self._reason
