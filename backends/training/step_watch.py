"""A watch ends the process of a member that hangs, though its heartbeats go on.

A stuck GPU or a file server that does not answer holds up a step for ever, and perhaps an exchange.
The step goes to another member when the host loses this one, and the operator starts it again.
"""

import os
import sys
import threading
from typing import Callable, Optional

from backends.training.compute_clock import ComputeClock

#: What a computation may take: so many times the longest one before it, and so many heartbeat
#: limits in any case; the first one, in which frameworks prepare much, so many seconds.
FACTOR, LEAST_LIMITS, FIRST_S = 10.0, 6.0, 1800.0
#: What an exchange of peers may take in any case: others may make their first step meanwhile.
EXCHANGE_S = 2.0 * FIRST_S
#: How the last words of an agent begin that ends itself.
LAST_WORDS = "the agent ends: "


def overdue(clock: ComputeClock, least_s: float, what: str = "a step") -> Optional[str]:
    """Why what a clock times counts as hung; None where it does not."""
    seconds, longest_s = clock.seconds(), clock.longest_s
    if longest_s is None:
        return None if seconds <= max(FIRST_S, least_s) else "%s, the first, has taken %.0f s" % (what, seconds)
    if seconds <= max(FACTOR * longest_s, least_s):
        return None
    return "%s has taken %.0f s, the longest before it %.3g s: it hangs" % (what, seconds, longest_s)


def end_process(reason: str) -> None:
    """End this process, of which a thread may be stuck for ever."""
    sys.stderr.write(LAST_WORDS + reason + "\n")
    sys.stderr.flush()
    os._exit(1)


class StepWatch:
    """Watches a clock from a thread of its own, within ``with``.

    what: the clock times; least_s: seconds that it may take in any case.
    """

    def __init__(
        self, clock: ComputeClock, least_s: float, on_hung: Callable[[str], None] = end_process, what: str = "a step"
    ) -> None:
        self._clock = clock
        self._least_s = least_s
        self._on_hung = on_hung
        self._what = what
        self._over = threading.Event()

    def __enter__(self) -> "StepWatch":
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def _watch(self) -> None:
        while not self._over.wait(self._least_s / 10.0):
            reason = overdue(self._clock, self._least_s, self._what)
            if reason is not None:
                self._on_hung(reason)
                return
