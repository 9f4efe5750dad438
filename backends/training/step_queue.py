"""How far a run has come, and what that makes due."""

import abc
import threading
from typing import Callable, Dict, NamedTuple, Optional


class RunProgress:
    """``made``: steps of all members, of which ``done`` count. An evaluation is due whenever a multiple of
    ``evaluate_every`` is passed, the last one made after ``evaluated`` steps, and one at the end."""

    def __init__(self, total: int, done: int, evaluated: int, evaluate_every: int, save_every: int = 0) -> None:
        self.total = total
        self.made = done
        self.evaluated = evaluated
        self._evaluate_every = evaluate_every
        self._save_every = save_every

    @property
    def done(self) -> int:
        """Steps made, of ``total``: the last round may have more."""
        return min(self.made, self.total)

    def step(self) -> bool:
        """One more step is made; whether a checkpoint is due now."""
        before, self.made = self.done, self.made + 1
        every = self._save_every
        return bool(every and self.done // every > before // every and self.done < self.total)

    def evaluation_due(self, trained: bool) -> bool:
        """Whether weights are to be evaluated; trained: whether nobody makes a step any more."""
        if trained:
            return self.evaluated != self.total
        every = self._evaluate_every
        return bool(every and self.done // every > self.evaluated // every and self.done < self.total)


class WorkQueue(abc.ABC):
    """Work of a run whose steps and evaluations ``course`` counts. Thread-safe.

    ``lock``: re-entrant, for who must do something else as one with it.
    """

    #: The epoch that there is or must be: who waits in an earlier one waits in vain (see turns.Turns).
    call = 0

    def __init__(self, course: RunProgress) -> None:
        self._course = course
        self._stopped = False
        self.lock = threading.Condition()

    @property
    @abc.abstractmethod
    def _trained(self) -> bool:
        """Whether nobody makes a step any more."""

    @property
    def done(self) -> int:
        """Steps made, of those asked for."""
        return self._course.done

    @property
    def finished(self) -> bool:
        """All steps and the last evaluation are done."""
        return self._trained and not self._course.evaluation_due(True)

    @property
    def over(self) -> bool:
        """Finished or stopped."""
        return self._stopped or self.finished

    def stop(self) -> None:
        """Hand out nothing more: everybody is told to finish."""
        with self.lock:
            self._stopped = True
            self.lock.notify_all()

    def wake(self) -> None:
        """Have those who wait asked again whether they are gone."""
        with self.lock:
            self.lock.notify_all()

    def wait(self, timeout_s: float) -> bool:
        """Wait until the run is over; False when the time is up before."""
        with self.lock:
            return self.lock.wait_for(lambda: self.over, timeout_s)


STEP = "step"


EVALUATE = "evaluate"


FINISH = "finish"


class WorkItem(NamedTuple):
    """What a free worker is to do next; ``step`` counts from 0."""

    kind: str
    step: int


class StepQueue(WorkQueue):
    """Hands out ``total`` steps, an evaluation whenever a multiple of ``evaluate_every`` is passed, one at the end.

    A step that its worker abandons goes back and is handed to somebody else, so that exactly ``total``
    updates are made. A run goes on from ``done`` steps, the last of its evaluations made after ``evaluated``.
    A worker holds one ticket at most. Raises ValueError where there is nothing left to go on with.
    """

    def __init__(self, total: int, done: int = 0, evaluate_every: int = 0, evaluated: int = 0) -> None:
        if done > total:
            raise ValueError("%d steps are done already, more than the run's %d; ask for more" % (done, total))
        super().__init__(RunProgress(total, done, evaluated, evaluate_every))
        self._held: Dict[str, WorkItem] = {}

    def take(
        self, worker: str, gone: Callable[[], bool] = lambda: False, may_begin: Callable[[], bool] = lambda: True
    ) -> WorkItem:
        """The next piece of work; waits while all that is left is in the hands of others, and until it may begin.

        ``may_begin`` is called under the lock. FINISH when there is no more, and for a worker that is ``gone``: after
        ``wake`` those who wait are asked again.
        """
        with self.lock:
            while True:
                ticket = WorkItem(FINISH, self.done) if gone() else self._next() if self.over or may_begin() else None
                if ticket is None:
                    self.lock.wait()
                    continue
                if ticket.kind != FINISH:
                    self._held[worker] = ticket
                return ticket

    def _next(self) -> Optional[WorkItem]:
        if self.over:
            return WorkItem(FINISH, self.done)
        held = [ticket.kind for ticket in self._held.values()]
        if EVALUATE not in held and self._course.evaluation_due(self._trained):
            return WorkItem(EVALUATE, self.done)
        step = self.done + held.count(STEP)
        return WorkItem(STEP, step) if step < self._course.total else None

    @property
    def _trained(self) -> bool:
        return self.done == self._course.total

    def complete(self, worker: str) -> int:
        """The worker's ticket is done: an update was made, or an evaluation has come. Returns the steps now done."""
        with self.lock:
            ticket = self._held.pop(worker)
            if ticket.kind == STEP:
                self._course.step()
            else:
                self._course.evaluated = ticket.step
            self.lock.notify_all()
            return self.done

    def abandon(self, worker: str) -> None:
        """The worker is gone, or what it brought is of no use: what it held goes to somebody else."""
        with self.lock:
            self._held.pop(worker, None)
            self.lock.notify_all()
