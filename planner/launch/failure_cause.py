"""One rank is the cause where several fail at about the same time: the first to raise or end."""

from collections.abc import Collection
from dataclasses import dataclass, field

from planner.launch.output import TRACEBACK

#: Longest wait for the end of a rank that showed its exception before another rank ended.
CAUSE_S = 3.0


@dataclass
class FirstFailure:
    """Finds the rank that failed first. Times are seconds of one clock.

    A rank that raises prints its exception, and only then do its connections close. That lets the
    others raise as well, and one of them may end before it. Among the ranks that failed by
    themselves, the one whose exception was seen first is therefore the cause; one that ended
    without any exception, e.g. by a signal, is the cause if it was the first to end.
    """

    _raised_s: dict[str, float] = field(default_factory=dict)
    _failed_s: dict[str, float] = field(default_factory=dict)
    _over: set[str] = field(default_factory=set)

    def printed(self, name: str, line: str, now_s: float) -> None:
        """A rank has printed a line on standard error."""
        if TRACEBACK in line:
            self._raised_s[name] = now_s

    def ended(self, name: str, failed: bool, now_s: float) -> None:
        """A rank has ended by itself."""
        self._over.add(name)
        if failed:
            self._failed_s[name] = now_s

    def cause(self, names: Collection[str], now_s: float) -> str | None:
        """The rank that failed first; None if none has failed, or while that is not yet clear."""
        if not self._failed_s:
            return None
        first = min(self._failed_s, key=lambda name: self._failed_s[name])
        if first not in self._raised_s:
            return first
        before = [name for name in names if self._raised_s.get(name, now_s) < self._raised_s[first]]
        if any(name not in self._over for name in before) and now_s < self._failed_s[first] + CAUSE_S:
            return None
        suspects = [name for name in before if name in self._failed_s]
        return min([*suspects, first], key=lambda name: self._raised_s[name])
