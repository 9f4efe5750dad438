"""An order at work on a device is listened to until its end, and may be told to stop."""

import queue
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from planner.agents.call import Call, Event
from planner.agents.pool import AgentPool
from planner.errors import DeviceLostError, PlannerError, RunError
from planner.fleet.device import Device

#: Events with the name of the order that they are of; None for its end.
Events = queue.Queue[tuple[str, Event | None]]


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

    def __init__(self, name: str, device: str, call: Call, events: Events) -> None:
        self.name = name
        self.result: Any = None
        self.error: PlannerError | None = None
        self._device = device
        self._call = call
        self._events = events

    def listen(self, on_event: Callable[[Event], None] = lambda event: None) -> None:
        """Queue its events and its end, in a thread of its own; ``on_event`` comes before."""
        threading.Thread(target=self._listen, args=(on_event,), daemon=True).start()

    def _listen(self, on_event: Callable[[Event], None]) -> None:
        def heard(event: Event) -> None:
            on_event(event)
            self._events.put((self.name, event))

        try:
            self.result = self._call.result(on_event=heard)
        except PlannerError as error:
            self.error = error
        except Exception as error:  # noqa: BLE001 - an unreported end would leave the run waiting forever
            self.error = RunError(f"{self._device}: {type(error).__name__}: {error}")
        self._events.put((self.name, None))

    def stop(self) -> None:
        """Tell it to end; a device that is lost is reported as such."""
        with suppress(DeviceLostError):
            self._call.stop()
