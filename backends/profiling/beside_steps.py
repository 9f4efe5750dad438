"""Beside steps that are timed runs what runs beside those of a run.

Sensors are sampled, the reference loop makes its rounds, and a report is made of both every second.
"""

import json
from typing import Any, Optional, Tuple

from backends.protocol.events import MemberTelemetry
from backends.protocol.json_messages import encode
from backends.training.telemetry import TelemetrySender
from profilers.machine_speed import SpeedMeter
from profilers.records.readings import MachineSpeed, Window
from profilers.sampling import Sampler


class BesideSteps:
    """What a device measures of itself while steps are timed; ``start`` and ``stop`` bound it."""

    def __init__(self) -> None:
        self._sampler, self._speed_meter = Sampler(), SpeedMeter()

    def start(self) -> None:
        """Begin a window."""
        self._last: Optional[MemberTelemetry] = None
        self._telemetry = TelemetrySender(
            self._report, sampler=lambda: _Whole(self._sampler), speed_meter=lambda: _Whole(self._speed_meter)
        )
        self._telemetry.__enter__()

    def stop(self) -> Tuple[Window, MachineSpeed]:
        """End the window. What was measured in all of it, and how fast the machine was."""
        self._telemetry.__exit__(None, None, None)
        assert self._last is not None and self._last.speed is not None, "a sender reports at its end"
        return self._last.window, self._last.speed

    def _report(self, event: MemberTelemetry) -> None:
        json.dumps(encode(event))  # a run sends it
        self._last = event


class _Whole:
    """A sampler, or a meter, of which a window lasts until it is stopped.

    Each turn tells of the first interval: those of a run are as long, and to tell of all that has
    passed takes longer and longer.
    """

    def __init__(self, meter: Any) -> None:
        self.start, self.stop, self._so_far = meter.start, meter.stop, meter.so_far
        self._first: Any = None

    def turn(self) -> Any:
        if self._first is None:
            self._first = self._so_far()
        return self._first
