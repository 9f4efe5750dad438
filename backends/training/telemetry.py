"""A member of a run tells the operator its readings and its time spent every second."""

import threading
from typing import Any, Callable

from backends.data.arrivals import ALL_THERE, Arrivals
from backends.data.injected import NO_INJECTION, Injection
from backends.protocol.events import Emit, MemberTelemetry, TimeSpent
from profilers.sampling import Sampler

#: Seconds between two events.
TELEMETRY_S = 1.0


class TelemetrySender:
    """Emits readings since the last event and the time spent so far, also at the end.

    arrivals, injection: of the member's samples, whose figures are emitted as well.
    """

    def __init__(
        self,
        emit: Emit,
        interval_s: float = TELEMETRY_S,
        sampler: Callable[[], Any] = Sampler,
        arrivals: Arrivals = ALL_THERE,
        injection: Injection = NO_INJECTION,
    ) -> None:
        self._emit = emit
        self._arrivals = arrivals
        self._injection = injection
        self._interval_s = interval_s
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
        while not ended:
            ended = self._ended.wait(self._interval_s)
            window = self._sampler.stop() if ended else self._sampler.turn()
            stream, injected = self._arrivals.statistics(), self._injection.statistics()
            self._emit(MemberTelemetry(window, self._spent, stream, injected))
