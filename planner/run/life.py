"""The life of a run: orders are watched until they end, one fails, or Ctrl-C stops them.

``train`` (with either engine) and ``launch`` are its users: train/start.py and launch/script_run.py
give each order to a supervisor, which starts it, follows it, and starts it again where its member
may be lost. Each user says what an event means (train/monitor.py, script_run.py), which failure
ends all, and what the result is.
"""

import abc
import queue
import time
from collections.abc import Callable
from contextlib import suppress
from typing import ClassVar, Generic, TypeVar

from planner.agents.call import TICK_S, Event
from planner.run.supervisor import Signals, Supervisor

Result = TypeVar("Result")


class Life(abc.ABC, Generic[Result]):
    """Watches the orders that end with the run; their events arrive in one queue.

    stop_s: longest wait for orders that were told to stop, since they last said that they save.
    orders: those that end with the run, by the names of their events.
    interrupted: whether Ctrl-C has been pressed.
    """

    stop_s: ClassVar[float]

    def __init__(self, signals: Signals, clock: Callable[[], float] = time.monotonic) -> None:
        self.signals = signals
        self.clock = clock
        self.orders: dict[str, Supervisor] = {}
        self.interrupted = False
        self._stop_by_s: float | None = None
        self._presses = 0

    @abc.abstractmethod
    def handle(self, source: str, event: Event | None) -> None:
        """An event of an order or a member; None for its end."""

    @abc.abstractmethod
    def outcome(self, ended: bool) -> Result | None:
        """The result, once it is known; asked after every event, and in between.

        ended: whether all orders have ended and all their events have been handled.
        Raises RunError where the run has failed.
        """

    @abc.abstractmethod
    def say_stopping(self) -> None:
        """Tell the operator that Ctrl-C was heard."""

    @abc.abstractmethod
    def late(self) -> Result:
        """The result where an order has not stopped within ``stop_s``, or an error."""

    def at_once(self) -> Result:
        """The result at a second Ctrl-C, or an error."""
        raise KeyboardInterrupt

    def watch(self) -> Result:
        """Follow the run to its result. One Ctrl-C stops all orders; a second waits for none.

        The first is no second one where a failure has stopped them: what is trained is being saved.
        """
        while True:
            try:
                if self._stop_by_s is not None and self.clock() > self._stop_by_s:
                    return self.late()
                # Read before the queue, which holds by now all events that came before the ends.
                ended = all(order.ended for order in self.orders.values())
                self.take()
                result = self.outcome(ended and self.signals.events.empty())
                if result is not None:
                    return result
            except KeyboardInterrupt:
                self._presses += 1
                stopping = self._stop_by_s is not None
                if self._presses > 1 or (self.signals.over.is_set() and not stopping):
                    return self.at_once()
                self.say_stopping()
                if not stopping:
                    self.interrupted = True
                    self.stop("Ctrl-C")

    def take(self) -> None:
        """Handle the next event, if one comes soon."""
        with suppress(queue.Empty):
            self.handle(*self.signals.events.get(timeout=TICK_S))

    def wait_on(self) -> None:
        """Wait for ``stop_s`` from now on for orders that were told to stop."""
        if self._stop_by_s is not None:
            self._stop_by_s = self.clock() + self.stop_s

    def stop(self, reason: str) -> None:
        """Tell all orders to stop; whoever does not hear of it ends with its agent."""
        self._stop_by_s = self.clock() + self.stop_s
        for order in self.orders.values():
            if not order.ended:
                order.stop(reason)
