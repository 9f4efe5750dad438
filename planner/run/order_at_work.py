"""An order at work on a device is listened to until its end, and may be told to stop."""

import queue
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from planner.agents.call import Call, Event
from planner.agents.pool import AgentPool
from planner.errors import DeviceLostError, PlannerError, RunError
from planner.fleet.device import Device

Awaited = TypeVar("Awaited")

#: Longest wait until an order is ready to begin.
READY_S = 300.0


@dataclass(frozen=True)
class Signals:
    """Signals between the threads of a run.

    go: the members begin.
    over: the run has ended; nobody is started again.
    events: with the names of the orders that they are of; None for an order's end.
    """

    go: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)
    events: queue.Queue[tuple[str, Event | None]] = field(default_factory=queue.Queue)


def open_agents(pool: AgentPool, devices: Iterable[Device]) -> None:
    """Start an agent on every device. Raises RunError naming those that cannot be reached."""
    pool.open(devices)
    if pool.errors:
        raise RunError("; ".join(str(error) for error in pool.errors.values()))


class OrderAtWork:
    """One order that an agent carries out; ``name`` is that of its events.

    Its result, or its error, is kept and not queued: Ctrl-C may lose what was just taken from the
    queue.
    """

    def __init__(self, name: str, device: str, call: Call, signals: Signals) -> None:
        self.name = name
        self.result: Any = None
        self.error: PlannerError | None = None
        self._device = device
        self._call = call
        self._events = signals.events

    @property
    def ended(self) -> bool:
        """Whether its result, or its error, is known."""
        return self.result is not None or self.error is not None

    def listen(self, on_event: Callable[[Event], None] = lambda event: None) -> None:
        """Queue its events and its end, in a thread of its own; ``on_event`` comes before."""
        threading.Thread(target=self._listen, args=(on_event,), daemon=True).start()

    def _listen(self, on_event: Callable[[Event], None]) -> None:
        def heard(event: Event) -> None:
            on_event(event)
            self._events.put((self.name, event))

        try:
            self.result = self._call.result(on_event=heard)
        except Exception as error:  # noqa: BLE001 - an unreported end would leave the run waiting forever
            self.error = as_planner_error(self._device, error)
        self._events.put((self.name, None))

    def stop(self) -> None:
        """Tell it to end; a device that is lost is reported as such."""
        with suppress(DeviceLostError):
            self._call.stop()


def as_planner_error(device: str, error: Exception) -> PlannerError:
    """The error itself, or one that names the device and what nobody expected there."""
    return error if isinstance(error, PlannerError) else RunError(f"{device}: {type(error).__name__}: {error}")


def expect(call: Call, kind: type[Awaited]) -> Awaited:
    """The order's first event, which is to be of this class and to come within READY_S.

    Raises the error that the order failed with, else RunError.
    """
    event = call.event(READY_S)
    if isinstance(event, kind):
        return event
    if call.ended:
        call.result()
    raise RunError(f"`{call.name}` was not ready within {READY_S:g} s")
