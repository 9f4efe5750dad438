"""Sensors that take long to answer: they are asked in a thread, and reading gives their last answer at once."""

import collections
import threading
import time
from typing import Any, Callable, Deque, List, Optional, Tuple

from profilers.file_tree import Unavailable
from profilers.sensors.base import Sensor

PERIOD_S = 1.0
#: How long the first question waits, and how old an answer may become.
PATIENCE_S = 3.0
#: Answers that are kept: more than five hours of them.
KEPT = 20000


class Poller:
    """Asks once a second in a thread of its own, from the first question until ``close``.

    ask: gives an answer, or raises Unavailable; it shall end by itself within a few seconds. answers: (monotonic
    time, answer), the newest last.
    """

    def __init__(self, ask: Callable[[], Any], period_s: float = PERIOD_S) -> None:
        self.answers: Deque[Tuple[float, Any]] = collections.deque(maxlen=KEPT)
        self._ask = ask
        self._period_s = period_s
        self._stop: Optional[threading.Event] = None
        self._asked = threading.Event()
        self._reason: Optional[str] = None

    def newest(self) -> Any:
        """The last answer. Waits only for the first one. Raises Unavailable."""
        if self._stop is None:
            self._start()
        if self._reason is not None:
            raise Unavailable(self._reason)
        at_s, answer = self.answers[-1]
        age_s = time.monotonic() - at_s
        if age_s > PATIENCE_S:
            raise Unavailable("its last answer is %.0f s old" % age_s)
        return answer

    def close(self) -> None:
        """Ask no more. Idempotent."""
        if self._stop is not None:
            self._stop.set()
            self._stop = None

    def _start(self) -> None:
        self._stop = threading.Event()
        self._asked.clear()
        self._reason = "it has not answered within %g s" % PATIENCE_S
        threading.Thread(target=self._run, args=(self._stop,), name="poller", daemon=True).start()
        self._asked.wait(PATIENCE_S)

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
        self._asked.set()


class PolledSensor(Sensor):
    """Watts out of a poller's answers; several sensors may share one. ``watts`` raises Unavailable."""

    def __init__(
        self, name: str, covers: str, poller: Poller, watts: Callable[[Any], float], emulated: bool = False
    ) -> None:
        self.name = name
        self.covers = covers
        self.emulated = emulated
        self._poller = poller
        self._watts = watts

    def read(self) -> float:
        return self._watts(self._poller.newest())

    def history(self, begin_s: float, end_s: float) -> Tuple[List[float], List[float]]:
        """Every answer once, at its own time: in between ``read`` repeats it."""
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
