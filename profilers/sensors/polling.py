"""A thread polls the sensors that answer slowly, so that a read returns at once."""

import collections
import threading
import time
from typing import Any, Callable, Deque, List, Optional, Tuple, Union

from profilers.file_tree import Unavailable
from profilers.running_program import RunningProgram
from profilers.sensors.base import Sensor

PERIOD_S = 1.0
#: Longest wait for the first answer, and largest age of the newest one.
ANSWER_LIMIT_S = 3.0
#: Most answers in the history: more than five hours of them.
MAX_ANSWERS = 20000


class Poller:
    """Asks once a second in a thread, from the first read until ``close``.

    ask: returns an answer within a few seconds, or raises Unavailable.
    answers: (monotonic time, answer), the newest last.
    """

    def __init__(self, ask: Callable[[], Any], period_s: float = PERIOD_S) -> None:
        self.answers: Deque[Tuple[float, Any]] = collections.deque(maxlen=MAX_ANSWERS)
        self._ask = ask
        self._period_s = period_s
        self._stop: Optional[threading.Event] = None
        self._first_answer = threading.Event()
        self._reason: Optional[str] = None

    def newest(self) -> Any:
        """The newest answer. Waits only for the first one. Raises Unavailable."""
        if self._stop is None:
            self._start()
        if self._reason is not None:
            raise Unavailable(self._reason)
        at_s, answer = self.answers[-1]
        age_s = time.monotonic() - at_s
        if age_s > ANSWER_LIMIT_S:
            raise Unavailable("its last answer is %.0f s old" % age_s)
        return answer

    def close(self) -> None:
        """Stop the thread. Idempotent."""
        if self._stop is not None:
            self._stop.set()
            self._stop = None

    def _start(self) -> None:
        self._stop = threading.Event()
        self._first_answer.clear()
        self._reason = "it has not answered within %g s" % ANSWER_LIMIT_S
        threading.Thread(target=self._run, args=(self._stop,), name="poller", daemon=True).start()
        self._first_answer.wait(ANSWER_LIMIT_S)

    def _run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            began_s = time.monotonic()
            self._try(stop)
            stop.wait(max(0.0, began_s + self._period_s - time.monotonic()))

    def _try(self, stop: threading.Event) -> None:
        try:
            answer, reason = self._ask(), None
        except Unavailable as error:
            answer, reason = None, str(error)
        if stop.is_set():
            return
        if reason is None:
            self.answers.append((time.monotonic(), answer))
        self._reason = reason
        self._first_answer.set()


class PolledSensor(Sensor):
    """Watts that ``watts`` extracts from answers of a poller or program, which others may share."""

    def __init__(
        self, name: str, covers: str, poller: Union[Poller, RunningProgram], watts: Callable[[Any], float]
    ) -> None:
        super().__init__(name, covers, lambda: watts(poller.newest()))
        self._poller = poller
        self._watts = watts

    def history(self, begin_s: float, end_s: float) -> Tuple[List[float], List[float]]:
        """Each answer once, at its own time; ``read`` repeats it in between."""
        times_s, values = [], []
        for at_s, answer in list(self._poller.answers):
            if begin_s <= at_s <= end_s:
                try:
                    values.append(self._watts(answer))
                except Unavailable:
                    continue
                times_s.append(at_s)
        return times_s, values

    def close(self) -> None:
        self._poller.close()
