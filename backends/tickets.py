"""The steps of a run, handed out one at a time to whichever worker is free (Gu et al., step 6)."""

import threading
from typing import Dict, NamedTuple, Optional

STEP = "step"
EVALUATE = "evaluate"
FINISH = "finish"


class Ticket(NamedTuple):
    """What a free worker is to do next; ``step`` counts from 0."""

    kind: str
    step: int


class Tickets:
    """Hands out ``total`` steps, an evaluation after every ``evaluate_every`` of them and one at the end.

    A step that its worker abandons goes back and is handed to somebody else, so that exactly ``total``
    updates are made. Thread-safe.
    """

    def __init__(self, total, done=0, evaluate_every=0):
        # type: (int, int, int) -> None
        self.total = total
        self.done = done
        self._evaluate_every = evaluate_every
        self._evaluated_at = done
        self._held = {}  # type: Dict[str, Ticket]
        self._stopped = False
        self._finished = False
        self._changed = threading.Condition()

    def take(self, worker):
        # type: (str) -> Ticket
        """The next piece of work; waits while all that is left is in the hands of others."""
        with self._changed:
            while True:
                ticket = self._next()
                if ticket is not None:
                    if ticket.kind != FINISH:
                        self._held[worker] = ticket
                    return ticket
                self._changed.wait()

    def _next(self):
        # type: () -> Optional[Ticket]
        evaluating = any(ticket.kind == EVALUATE for ticket in self._held.values())
        stepping = sum(ticket.kind == STEP for ticket in self._held.values())
        if self._stopped or self._finished:
            return Ticket(FINISH, self.done)
        if not evaluating and self._due():
            return Ticket(EVALUATE, self.done)
        if self.done + stepping < self.total:
            return Ticket(STEP, self.done + stepping)
        return None

    def _due(self):
        # type: () -> bool
        if self.done == self._evaluated_at:
            return False
        every = self._evaluate_every
        return self.done == self.total or bool(every and self.done // every > self._evaluated_at // every)

    def complete(self, worker):
        # type: (str) -> None
        """The worker's ticket is done: an update was made, or an evaluation has come."""
        with self._changed:
            ticket = self._held.pop(worker)
            if ticket.kind == STEP:
                self.done += 1
            else:
                self._evaluated_at = ticket.step
            self._finished = self.done == self._evaluated_at == self.total
            self._changed.notify_all()

    def abandon(self, worker):
        # type: (str) -> None
        """The worker is gone: what it held goes to somebody else."""
        with self._changed:
            self._held.pop(worker, None)
            self._changed.notify_all()

    def stop(self):
        # type: () -> None
        """Hand out no more work: every worker is told to finish."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def wait(self, timeout_s):
        # type: (float) -> bool
        """Wait until the run is over or stopped; False when the time is up before."""
        with self._changed:
            return self._changed.wait_for(lambda: self._finished or self._stopped, timeout_s)

    @property
    def finished(self):
        # type: () -> bool
        """All steps and the last evaluation are done."""
        return self._finished
