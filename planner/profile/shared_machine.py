"""Devices on one machine get in one another's way; a conductor times each alone, then beside all.

Such devices are GPUs of one host, containers, or the parts of a lab. Each is timed while the others
rest, then all together, then each alone again, so that a slow change of the machine counts alike.
"""

import contextlib
from collections.abc import Callable, Iterable, Mapping

from backends.protocol.events import MEASURED, WAITING, StepTimed
from planner.agents.call import Call
from planner.errors import DeviceLostError, PlannerError
from planner.profile import repeats
from profilers import records

#: Seconds without an event after which a device counts as hung.
SILENCE_S = 600.0


class Conductor:
    """Leads the timings of devices on one machine through their repeats.

    calls: by device, of the order ``RepeatStepsBeside``.
    on_event: is given what devices say meanwhile; on_failure: why one of them drops out.
    """

    def __init__(
        self,
        calls: Mapping[str, Call],
        on_event: Callable[[str, StepTimed], None],
        on_failure: Callable[[str, PlannerError], None],
    ) -> None:
        self._calls = dict(calls)
        self._on_event = on_event
        self._on_failure = on_failure

    def run(self) -> dict[str, records.RepeatsBeside]:
        """The repeats of all devices that went through all of them."""
        try:
            self._until(WAITING, self._calls)
            self._each_alone(WAITING)
            self._go(self._calls)
            self._until(MEASURED, self._calls)
            self._go(self._calls)
            self._until(WAITING, self._calls)
            self._each_alone(None)
            return {name: found for name in list(self._calls) for found in self._result(name)}
        finally:
            for call in self._calls.values():
                if not call.ended:
                    with contextlib.suppress(PlannerError):  # it is gone anyway
                        call.stop()

    def _each_alone(self, stage: str | None) -> None:
        """One device after the other, until it is at this stage, or has ended."""
        for name in list(self._calls):
            self._go([name])
            self._until(stage, [name])

    def _go(self, names: Iterable[str]) -> None:
        for name in list(names):
            if name in self._calls:
                with contextlib.suppress(DeviceLostError):  # which its next event tells
                    self._calls[name].go()

    def _until(self, stage: str | None, names: Iterable[str]) -> None:
        """Wait until each of these devices is at a stage, or has ended; drop those that failed."""
        for name in list(names):
            while name in self._calls:
                event = self._calls[name].event(SILENCE_S)
                if event is None:
                    self._result(name)
                    break
                self._on_event(name, event)
                if event.stage == stage:
                    break

    def _result(self, name: str) -> list[records.RepeatsBeside]:
        """The result of a device, or none, if it failed; it then takes part no more."""
        try:
            return [self._calls[name].result(SILENCE_S)]
        except PlannerError as error:
            del self._calls[name]
            self._on_failure(name, error)
            return []


def slowed(timed: records.StepProfile, found: records.RepeatsBeside, others: Iterable[str]) -> records.StepProfile:
    """A timing after repeats alone and beside others.

    What was timed first does not count: the others were measured at that time, too.
    """
    first = found.first
    alone = timed._replace(
        gradient_s=first.gradient_s._replace(warmup=timed.gradient_s.warmup),
        copy_s=first.copy_s,
        update_s=first.update_s,
        cpu_s_per_step=first.cpu_s_per_step,
        speed=first.speed,
        beside=records.Beside(tuple(others), found.beside.gradient_s),
    )
    return repeats.pooled(repeats.begun(alone), found.second)
