"""A step queue hands out the steps and evaluations of a run, one work item at a time.

An item of a worker that leaves before it is done goes to another worker.
"""

import abc
import contextlib
import math
import threading
from typing import Callable, Dict, Iterator, NamedTuple, Optional, Tuple

from backends.network.mailbox import RUN_OVER
from backends.protocol.frames import EVALUATE, FINISH, STEP

#: After a checkpoint the next one rests so many times as long as it took: on a slow disk, or over a
#: slow link, checkpoints take a tenth of the time.
REST = 9.0


class WorkItem(NamedTuple):
    """The next task of a free worker."""

    kind: str  # STEP, EVALUATE or FINISH
    step: int  # its number, counted from 0
    steps: int = 1  # how many it stands for


class StepCounter:
    """Counts the steps of a run and says when an evaluation or a checkpoint is due.

    total: requested steps.
    evaluate_every, save_every: steps between evaluations and between checkpoints; 0 for never.
    save_every_s: seconds from the end of a checkpoint to the next, by the clock of the run; 0 for
        never.
    made: steps of all members; the last round may exceed the total.
    evaluated: steps made before the last evaluation.
    save_due: whether a checkpoint between steps is due.
    """

    def __init__(self, total: int, evaluate_every: int = 0, save_every: int = 0, save_every_s: float = 0.0) -> None:
        self.total = total
        self._evaluate_every = evaluate_every
        self._save_every = save_every
        self._save_every_s = save_every_s
        self.made = self.evaluated = self._began_with = self._saved = 0
        self._elapsed_s = self._save_began_s = 0.0
        self._next_save_s = save_every_s
        self.save_due = False

    def resume(self, made: int, evaluated: int) -> None:
        """Go on from these counts."""
        self.made, self.evaluated = made, evaluated
        self._began_with = self._saved = made

    @property
    def done(self) -> int:
        """Steps made, at most ``total``."""
        return min(self.made, self.total)

    def count_steps(self, count: int) -> None:
        """Count some more steps."""
        before, self.made = self.done, self.made + count
        self.save_due |= self._passes(self._save_every, before)

    def see_clock(self, elapsed_s: float, saving: bool = False) -> None:
        """A checkpoint falls due in time, where steps have been made since the last one.

        elapsed_s: seconds since the run began. saving: whether one is being made.
        """
        self._elapsed_s = elapsed_s
        is_time = self._save_every_s and elapsed_s >= self._next_save_s and not saving
        self.save_due |= bool(is_time and self._saved < self.done < self.total)

    def take_due_save(self) -> bool:
        """Whether a checkpoint is due, which the caller then takes; at the end another is made."""
        due, self.save_due = self.save_due and self.done < self.total, False
        if due:
            self._saved, self._save_began_s = self.done, self._elapsed_s
            self._next_save_s = self._elapsed_s + self._save_every_s
        return due

    @property
    def saving_s(self) -> float:
        """Seconds since the newest checkpoint was taken."""
        return self._elapsed_s - self._save_began_s

    def end_save(self, elapsed_s: float) -> None:
        """A checkpoint was written, or could not be: the next one comes after a rest."""
        took_s = max(0.0, elapsed_s - self._save_began_s)
        self._next_save_s = elapsed_s + max(self._save_every_s, REST * took_s)

    @property
    def has_made_steps(self) -> bool:
        """Whether steps have been made besides those of the run that goes on."""
        return self.made > self._began_with

    @property
    def until_due(self) -> float:
        """Steps until an evaluation or a checkpoint between steps is due; infinite for none."""
        return min(
            (each - self.done % each for each in (self._evaluate_every, self._save_every) if each), default=math.inf
        )

    def evaluation_due(self, trained: bool) -> bool:
        """Whether the weights must be evaluated now; trained: whether all steps are made."""
        if trained:
            return self.evaluated != self.total
        return self._passes(self._evaluate_every, self.evaluated)

    def _passes(self, every: int, before: int) -> bool:
        """Whether a multiple of ``every`` was passed since ``before``, and before the end."""
        return bool(every and self.done // every > before // every and self.done < self.total)


class WorkQueue(abc.ABC):
    """The interface of step queues and schedulers. Thread-safe.

    ``lock`` is re-entrant, so that its owner can do more while no work is handed out or completed.
    """

    def __init__(self, counter: StepCounter) -> None:
        self._counter = counter
        self._stopped = False
        self.lock = threading.Condition()

    @abc.abstractmethod
    def complete(self, worker: str, steps: int = 1) -> int:
        """Count a worker's item as done, a round as so many steps; return the steps done so far."""

    @abc.abstractmethod
    def abandon(self, worker: str) -> None:
        """Take back a worker's item that it did not complete."""

    @property
    @abc.abstractmethod
    def _trained(self) -> bool:
        """Whether all steps are made."""

    @property
    def required_epoch(self) -> int:
        """The present epoch, or the one that must begin next; 0 where there are no epochs.

        RUN_OVER after a stop: who still waits for anything then waits in vain.
        """
        return RUN_OVER if self._stopped else 0

    @property
    def done(self) -> int:
        """Steps done, of those requested."""
        return self._counter.done

    @property
    def finished(self) -> bool:
        """Whether all steps and the last evaluation are done."""
        return self._trained and not self._counter.evaluation_due(True)

    @property
    def over(self) -> bool:
        """Whether the run is finished or stopped."""
        return self._stopped or self.finished

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """Hold the lock, then let all waiting threads see what has changed."""
        with self.lock:
            yield
            self.lock.notify_all()

    def stop(self) -> None:
        """Hand out nothing but FINISH from now on."""
        with self._changing():
            self._stopped = True

    def wake(self) -> None:
        """Wake all waiting threads to check whether they may go on or their connection ended."""
        with self._changing():
            pass

    def wait(self, timeout_s: float) -> bool:
        """Wait until the run is over; return False if the time is up first."""
        with self.lock:
            return self.lock.wait_for(lambda: self.over, timeout_s)


class StepQueue(WorkQueue):
    """Hands out exactly the requested steps, with evaluations between them and at the end.

    An item that its worker abandons goes to another one. A worker has one item at most.
    Raises ValueError where more steps are made already than requested.
    """

    def __init__(self, counter: StepCounter) -> None:
        made, total = counter.made, counter.total
        if made > total:
            raise ValueError("%d steps are done already, more than the run's %d; ask for more" % (made, total))
        super().__init__(counter)
        self._held: Dict[str, WorkItem] = {}

    def take(
        self,
        worker: str,
        gone: Callable[[], bool] = lambda: False,
        may_begin: Callable[[], bool] = lambda: True,
        steps: Callable[[], int] = lambda: 1,
    ) -> WorkItem:
        """The next item for a worker; blocks while there is none, or it may not begin.

        gone: whether the worker's connection has ended; it then gets FINISH.
        may_begin: called under the lock, and so is ``steps``, the most that the item may stand for.
        """
        with self.lock:
            while True:
                item = self._item_for(gone, may_begin, steps)
                if item is not None:
                    break
                self.lock.wait()
            if item.kind != FINISH:
                self._held[worker] = item
            return item

    def _item_for(
        self, gone: Callable[[], bool], may_begin: Callable[[], bool], steps: Callable[[], int]
    ) -> Optional[WorkItem]:
        if gone():
            return WorkItem(FINISH, self.done)
        return self._next(steps) if self.over or may_begin() else None

    def _next(self, steps: Callable[[], int] = lambda: 1) -> Optional[WorkItem]:
        if self.over:
            return WorkItem(FINISH, self.done)
        evaluating = any(item.kind == EVALUATE for item in self._held.values())
        if not evaluating and self._counter.evaluation_due(self._trained):
            return WorkItem(EVALUATE, self.done)
        step = self._handed_out
        left = self._counter.total - step
        return WorkItem(STEP, step, min(left, steps())) if left > 0 else None

    @property
    def _handed_out(self) -> int:
        """Steps that are done or in work."""
        return self.done + sum(item.steps for item in self._held.values() if item.kind == STEP)

    @property
    def items_left(self) -> int:
        """The most items of steps that are in work or can still be handed out."""
        in_work = sum(item.kind == STEP for item in self._held.values())
        return in_work + self._counter.total - self._handed_out

    @property
    def _trained(self) -> bool:
        return self.done == self._counter.total

    def complete(self, worker: str, steps: int = 1) -> int:
        with self._changing():
            item = self._held.pop(worker)
            if item.kind == STEP:
                self._counter.count_steps(steps)
            else:
                self._counter.evaluated = item.step
            return self.done

    def abandon(self, worker: str) -> None:
        with self._changing():
            self._held.pop(worker, None)

    def set_members(self, names: Tuple[str, ...]) -> None:
        """Take back the items of workers that have left."""
        for worker in set(self._held) - set(names):
            self.abandon(worker)
