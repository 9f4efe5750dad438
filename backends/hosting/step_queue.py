"""A step queue hands out the steps and evaluations of a run, one work item at a time.

An item of a worker that leaves before it is done goes to another worker.
"""

import abc
import contextlib
import math
import threading
from typing import Any, Callable, Dict, Iterator, NamedTuple, Optional, Tuple

from backends.network.mailbox import RUN_OVER
from backends.protocol.frames import EVALUATE, FINISH, STEP
from backends.training.run_spec import RunSpec, last_evaluated


class WorkItem(NamedTuple):
    """The next task of a free worker."""

    kind: str  # STEP, EVALUATE or FINISH
    step: int  # its number, counted from 0
    steps: int = 1  # how many it stands for


class RunProgress:
    """Counts the steps of a run and says when an evaluation or a checkpoint is due.

    total: requested steps.
    made: steps of all members; the last round may exceed the total.
    evaluated: steps made before the last evaluation.
    evaluate_every, save_every: steps between evaluations and between checkpoints; 0 for never.
    """

    def __init__(self, total: int, made: int, evaluated: int, evaluate_every: int, save_every: int = 0) -> None:
        self.total = total
        self.made = made
        self.evaluated = evaluated
        self._evaluate_every = evaluate_every
        self._save_every = save_every

    @property
    def done(self) -> int:
        """Steps made, at most ``total``."""
        return min(self.made, self.total)

    def count_steps(self, count: int) -> bool:
        """Count some more steps; return whether a checkpoint is now due."""
        before, self.made = self.done, self.made + count
        return self._passes(self._save_every, before)

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

    def __init__(self, progress: RunProgress) -> None:
        self._progress = progress
        self._stopped = False
        self.lock = threading.Condition()

    @abc.abstractmethod
    def complete(self, worker: str) -> int:
        """Count a worker's item as done; return the steps done so far."""

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
        return self._progress.done

    @property
    def finished(self) -> bool:
        """Whether all steps and the last evaluation are done."""
        return self._trained and not self._progress.evaluation_due(True)

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
    """Hands out exactly ``total`` steps, with evaluations between them and at the end.

    An item that its worker abandons goes to another one. A worker has one item at most.
    done, evaluated: counts that a resumed run continues from.
    Raises ValueError where ``done`` exceeds the total.
    """

    def __init__(self, total: int, done: int = 0, evaluate_every: int = 0, evaluated: int = 0) -> None:
        if done > total:
            raise ValueError("%d steps are done already, more than the run's %d; ask for more" % (done, total))
        super().__init__(RunProgress(total, done, evaluated, evaluate_every))
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
        if not evaluating and self._progress.evaluation_due(self._trained):
            return WorkItem(EVALUATE, self.done)
        step = self._handed_out
        left = self._progress.total - step
        return WorkItem(STEP, step, min(left, steps())) if left > 0 else None

    @property
    def _handed_out(self) -> int:
        """Steps that are done or in work."""
        return self.done + sum(item.steps for item in self._held.values() if item.kind == STEP)

    @property
    def items_left(self) -> int:
        """The most items of steps that are in work or can still be handed out."""
        in_work = sum(item.kind == STEP for item in self._held.values())
        return in_work + self._progress.total - self._handed_out

    @property
    def _trained(self) -> bool:
        return self.done == self._progress.total

    def complete(self, worker: str) -> int:
        with self._changing():
            item = self._held.pop(worker)
            if item.kind == STEP:
                self._progress.count_steps(item.steps)
            else:
                self._progress.evaluated = item.step
            return self.done

    def abandon(self, worker: str) -> None:
        with self._changing():
            self._held.pop(worker, None)

    def set_members(self, names: Tuple[str, ...]) -> None:
        """Take back the items of workers that have left."""
        for worker in set(self._held) - set(names):
            self.abandon(worker)


def resumed_queue(spec: RunSpec, meta: Dict[str, Any]) -> StepQueue:
    """The step queue of a run that resumes from a checkpoint.

    Raises ValueError where the checkpoint has more steps than the run.
    """
    return StepQueue(spec.run.steps, int(meta["step"]), spec.evaluate_every, last_evaluated(meta))
