"""The steps of a run, handed out one at a time to whichever worker is free (Gu et al., step 6)."""

import threading
from typing import Callable, Dict, NamedTuple, Optional

STEP = "step"
EVALUATE = "evaluate"
FINISH = "finish"


class Ticket(NamedTuple):
    """What a free worker is to do next; ``step`` counts from 0."""

    kind: str
    step: int


class Tickets:
    """Hands out ``total`` steps, an evaluation whenever a multiple of ``evaluate_every`` is passed, one at the end.

    A step that its worker abandons goes back and is handed to somebody else, so that exactly ``total``
    updates are made. A run goes on from ``done`` steps, the last of its evaluations made after ``evaluated``.
    A worker holds one ticket at most. Thread-safe. Raises ValueError where there is nothing left to go on with.
    """

    #: Nobody here waits for another whom the end of an epoch would leave waiting (see turns.Turns).
    call = 0

    def __init__(self, total, done=0, evaluate_every=0, evaluated=0):
        # type: (int, int, int, int) -> None
        if done > total:
            raise ValueError("%d steps are done already, more than the run's %d; ask for more" % (done, total))
        self.total = total
        self.done = done
        self._evaluate_every = evaluate_every
        self._evaluated = evaluated
        self._held = {}  # type: Dict[str, Ticket]
        self._stopped = False
        self._changed = threading.Condition()
        #: Re-entrant, for who must do something else as one with it.
        self.lock = self._changed

    def take(self, worker, gone=lambda: False, may_begin=lambda: True):
        # type: (str, Callable[[], bool], Callable[[], bool]) -> Ticket
        """The next piece of work; waits while all that is left is in the hands of others, and until it may begin.

        ``may_begin`` is called under the lock. FINISH when there is no more, and for a worker that is ``gone``: after
        ``wake`` those who wait are asked again.
        """
        with self._changed:
            while True:
                ticket = Ticket(FINISH, self.done) if gone() else self._next() if self._over or may_begin() else None
                if ticket is None:
                    self._changed.wait()
                    continue
                if ticket.kind != FINISH:
                    self._held[worker] = ticket
                return ticket

    @property
    def _over(self):
        # type: () -> bool
        return self._stopped or self.finished

    def _next(self):
        # type: () -> Optional[Ticket]
        if self._over:
            return Ticket(FINISH, self.done)
        held = [ticket.kind for ticket in self._held.values()]
        if EVALUATE not in held and self._due():
            return Ticket(EVALUATE, self.done)
        step = self.done + held.count(STEP)
        return Ticket(STEP, step) if step < self.total else None

    def _due(self):
        # type: () -> bool
        if self.done == self._evaluated:
            return False
        every = self._evaluate_every
        return self.done == self.total or bool(every and self.done // every > self._evaluated // every)

    def complete(self, worker):
        # type: (str) -> int
        """The worker's ticket is done: an update was made, or an evaluation has come. Returns the steps now done."""
        with self._changed:
            ticket = self._held.pop(worker)
            if ticket.kind == STEP:
                self.done += 1
            else:
                self._evaluated = ticket.step
            self._changed.notify_all()
            return self.done

    def abandon(self, worker):
        # type: (str) -> None
        """The worker is gone, or what it brought is of no use: what it held goes to somebody else."""
        with self._changed:
            self._held.pop(worker, None)
            self._changed.notify_all()

    def wake(self):
        # type: () -> None
        """Have waiting workers asked again whether they are gone."""
        with self._changed:
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
            return self._changed.wait_for(lambda: self._over, timeout_s)

    @property
    def finished(self):
        # type: () -> bool
        """All steps and the last evaluation are done."""
        return self.done == self._evaluated == self.total
