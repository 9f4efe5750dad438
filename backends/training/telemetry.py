"""A member of a run tells the operator its readings and its time spent every second."""

import threading
from typing import Any, Callable, Optional

from backends.data.arrivals import ALL_THERE, Arrivals
from backends.data.injected import NO_INJECTION, Injection
from backends.protocol.events import Emit, MemberTelemetry, TimeSpent
from profilers.records.readings import UNAVAILABLE, PowerReading, Window
from profilers.sampling import Sampler

#: Seconds between two events.
TELEMETRY_S = 1.0
#: What the sensors may take to be read, before an event goes without them.
READ_S = 5.0


class TelemetrySender:
    """Emits readings since the last event and the time spent so far, also at the end.

    Where reading fails or hangs, events go on without readings: they show that the member is alive.
    arrivals, injection: of the member's samples, whose figures are emitted as well.
    """

    def __init__(
        self,
        emit: Emit,
        interval_s: float = TELEMETRY_S,
        read_s: float = READ_S,
        sampler: Callable[[], Any] = Sampler,
        arrivals: Arrivals = ALL_THERE,
        injection: Injection = NO_INJECTION,
    ) -> None:
        self._emit = emit
        self._arrivals = arrivals
        self._injection = injection
        self._interval_s = interval_s
        self._read_s = read_s
        self._sampler = sampler()
        self._spent = TimeSpent()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def on_step(self, spent: TimeSpent) -> None:
        """The member has made a step, and spent so much time up to now."""
        self._spent = spent

    def __enter__(self) -> "TelemetrySender":
        self._sampler.start()
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        ended = False
        reading: Optional[_Reading] = None
        while not ended:
            ended = self._ended.wait(self._interval_s)
            if reading is None:
                reading = _Reading(self._sampler.stop if ended else self._sampler.turn)
            reading.join(self._read_s)
            window, reading = (HANGS, reading) if reading.is_alive() else (reading.window, None)
            stream, injected = self._arrivals.statistics(), self._injection.statistics()
            self._emit(MemberTelemetry(window, self._spent, stream, injected))


class _Reading(threading.Thread):
    """One reading of all sensors, in a thread of its own: one of them may hang."""

    def __init__(self, read: Callable[[], Window]) -> None:
        super().__init__(name="reading", daemon=True)
        self._read = read
        self.window = HANGS
        self.start()

    def run(self) -> None:
        try:
            self.window = self._read()
        except Exception as error:  # noqa: BLE001 - no sensor costs the run its member
            self.window = _without_sensors("%s: %s" % (type(error).__name__, error))


def _without_sensors(reason: str) -> Window:
    return Window(0.0, {}, (PowerReading("sensors", UNAVAILABLE, "", None, None, 0, reason),))


HANGS = _without_sensors("reading them takes more than %g s" % READ_S)
