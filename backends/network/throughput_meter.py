"""A throughput meter measures the rate of a link, not that of the socket's buffer."""

from typing import Optional

#: What may still be under way when a link counts as idle: the last acknowledgement is often late.
TAIL_BYTES = 1 << 12
#: Steps in which systems count the time since an acknowledgement.
QUIET_STEP_S = 0.01
#: Less than this tells nothing.
LEAST_BYTES = 2 * TAIL_BYTES


class ThroughputMeter:
    """Averages the rate of a link while it is busy.

    rate: bytes/s, recent ones weigh most; None before enough has been carried

    Times are in seconds by any one clock that only goes on.
    """

    def __init__(self) -> None:
        self.rate: Optional[float] = None
        self._since_s = 0.0
        self._sent = self._left = 0

    def begin(self, now_s: float) -> None:
        """Something is about to be sent."""
        if self._left <= TAIL_BYTES:
            self._since_s, self._sent = now_s, 0

    def sent(self, count: int) -> None:
        """So many bytes more have been sent."""
        self._sent += count

    def idle(self, left: int) -> bool:
        """Whether the link is idle with so many bytes still under way."""
        self._left = left
        return left <= TAIL_BYTES

    def left_s(self, now_s: float) -> float:
        """Seconds until all has been carried at the rate since the link was last idle.

        No more than have passed since then: a connection may be slow to begin.
        """
        passed_s, carried = now_s - self._since_s, self._sent - self._left
        return min(passed_s, passed_s * self._left / carried) if carried > 0 else passed_s

    def update_rate(self, now_s: float, quiet_s: float = 0.0) -> None:
        """Take the rate since the link was last idle.

        quiet_s: since the last acknowledgement. A computation beside the sender, or the quota of
            its processor, may have held up the look at an idle link. Others stall.
        """
        carried, passed_s = self._sent - self._left, max(1e-6, now_s - self._since_s)
        if carried > LEAST_BYTES:
            late_s = quiet_s if self._left <= TAIL_BYTES else 0.0
            rate = carried / max(passed_s - late_s, min(passed_s, QUIET_STEP_S))
            self.rate = rate if self.rate is None else 0.8 * self.rate + 0.2 * rate
