"""What hands out the work of a run, however it does: how far the run has come, and how it ends."""

import abc
import threading

from backends.course import Course


class Dispenser(abc.ABC):
    """Work of a run whose steps and evaluations ``course`` counts. Thread-safe.

    ``lock``: re-entrant, for who must do something else as one with it.
    """

    #: The epoch that there is or must be: who waits in an earlier one waits in vain (see turns.Turns).
    call = 0

    def __init__(self, course: Course) -> None:
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
