"""A watch ends the process of a member that hangs, though its heartbeats go on.

A stuck GPU or a file server that does not answer holds up a step for ever, and perhaps an exchange.
The step goes to another member when the host loses this one, and the operator starts it again.
"""

import contextlib
import os
import sys
import threading
from typing import Callable, Iterator, Optional

from backends.training.compute_clock import ComputeClock

#: What a computation may take: so many times the longest one of its kind before it, and so many
#: heartbeat limits in any case.
FACTOR, LEAST_LIMITS = 10.0, 6.0
#: What the first one of a kind may take in any case, in which frameworks prepare much, and what
#: each part of the preparation may: an import, the call of a job's function, reading its data.
FIRST_S = PREPARING_S = 300.0
#: How the last words of an agent begin that ends itself.
LAST_WORDS = "the agent ends: "
REMEDY = "it hangs; see what it waits for on this device"


def first_limit_s(predicted_s: float) -> float:
    """What building a model, or its first step, may take that is predicted to take so long."""
    return max(FIRST_S, FACTOR * predicted_s)


def overdue(clock: ComputeClock, least_s: float, first_s: float = FIRST_S) -> Optional[str]:
    """Why what a clock times counts as hung; None where it does not."""
    what, seconds, longest_s = clock.under_way()
    if longest_s is None:
        late = seconds > max(first_s, least_s)
        return "%s, the first, has taken %.0f s: %s" % (what, seconds, REMEDY) if late else None
    if seconds <= max(FACTOR * longest_s, least_s):
        return None
    return "%s has taken %.0f s, the longest before it %.3g s: %s" % (what, seconds, longest_s, REMEDY)


def end_process(reason: str) -> None:
    """End this process, of which a thread may be stuck for ever."""
    sys.stderr.write(LAST_WORDS + reason + "\n")
    sys.stderr.flush()
    os._exit(1)


@contextlib.contextmanager
def limited(what: str, limit_s: float = PREPARING_S, on_hung: Callable[[str], None] = end_process) -> Iterator[None]:
    """Watches what is done within ``with``, which may take so many seconds."""
    timer = threading.Timer(limit_s, on_hung, ("%s has taken %.0f s: %s" % (what, limit_s, REMEDY),))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class StepWatch:
    """Watches a clock from a thread of its own, within ``with``.

    least_s: seconds that anything may take in any case; first_s: the first of its kind.
    """

    def __init__(
        self,
        clock: ComputeClock,
        least_s: float,
        first_s: float = FIRST_S,
        on_hung: Callable[[str], None] = end_process,
    ) -> None:
        self._clock = clock
        self._least_s = least_s
        self._first_s = first_s
        self._on_hung = on_hung
        self._over = threading.Event()

    def __enter__(self) -> "StepWatch":
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def _watch(self) -> None:
        while not self._over.wait(self._least_s / 10.0):
            reason = overdue(self._clock, self._least_s, self._first_s)
            if reason is not None:
                self._on_hung(reason)
                return
