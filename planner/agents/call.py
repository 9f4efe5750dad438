"""A call is one order under way on a device: its events, then its result."""

import math
import queue
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol, TypeVar

from backends.protocol.json_messages import name_of
from backends.protocol.orders import Go, Stop
from planner.agents import results
from planner.agents.answers import Answer, Failure
from planner.errors import AgentError, DeviceLostError

Told = TypeVar("Told")

#: Longest wait at a stretch: the main thread sees Ctrl-C that another one took when it wakes.
TICK_S = 0.2
#: One of ``backends.protocol.events``.
Event = Any
#: Takes the pieces of a file that an agent sends.
Sink = Callable[[bytes], object]


class OrderSender(Protocol):
    """The agent client that has given an order."""

    name: str

    def send(self, order: Any) -> None:
        """Write one more order."""

    def failure(self, order: str, failure: Failure) -> Exception:
        """The exception for an error of the other side."""


class Call:
    """One order under way. sink: for the file that its answer brings, if any."""

    def __init__(self, agent: OrderSender, number: int, order: Any, sink: Sink | None = None) -> None:
        self._agent = agent
        self._number = number
        self._order = order
        self.name = name_of(type(order)).replace("_", " ")
        self.sink = sink
        self.answers: queue.Queue[Answer] = queue.Queue()
        self._last: Answer | None = None
        self._moved_s = -math.inf  # when the last piece of its file came

    def take_piece(self, piece: bytes) -> None:
        """A piece of the file that its answer brings."""
        assert self.sink is not None, "nobody else's files are passed on"
        self.sink(piece)
        self._moved_s = time.monotonic()

    def event(self, timeout_s: float | None = None) -> Event | None:
        """The next event; None when the order has ``ended``, or when time is up.

        timeout_s: without an event, and without a piece of its file.
        """
        if self._last is not None:
            return None
        began_s, limit_s = time.monotonic(), math.inf if timeout_s is None else timeout_s
        while True:
            left_s = max(began_s, self._moved_s) + limit_s - time.monotonic()
            try:
                answer = self.answers.get(timeout=max(0.0, min(TICK_S, left_s)))
                break
            except queue.Empty:
                if left_s <= 0.0:
                    return None
        if answer.ends:
            self._last = answer
        return answer.event

    def first(self, kind: type[Told], timeout_s: float) -> Told:
        """The next event, which is to be of this class. Raises as ``result`` where none comes."""
        event = self.event(timeout_s)
        if isinstance(event, kind):
            return event
        if not self.ended:
            raise self._silent(timeout_s)
        self.result()
        raise AgentError(f"{self._agent.name}: {self.name}: it ended before it was ready")

    @contextmanager
    def serving(self, kind: type[Told], timeout_s: float) -> Iterator[Told]:
        """The first event of an order that serves others until the block ends."""
        try:
            yield self.first(kind, timeout_s)
        finally:
            with suppress(DeviceLostError):
                self.stop()

    @property
    def ended(self) -> bool:
        """Whether the result, or the error, is here."""
        return self._last is not None

    def result(self, timeout_s: float | None = None, on_event: Callable[[Event], None] | None = None) -> Any:
        """Wait for the result, of the class that ``results`` has for the order.

        Raises AgentError for a failure over there and for a result of another class,
        DeviceLostError when it is gone.
        """
        while not self.ended:
            event = self.event(timeout_s)
            if event is not None:
                if on_event is not None:
                    on_event(event)
            elif not self.ended:
                raise self._silent(timeout_s)
        assert self._last is not None, "ended means that the last message is here"
        if self._last.failure is not None:
            raise self._agent.failure(self.name, self._last.failure)
        return results.read(self._order, self._last.result, f"{self._agent.name}: {self.name}")

    def _silent(self, timeout_s: float | None) -> DeviceLostError:
        return DeviceLostError(
            f"{self._agent.name}: no answer to `{self.name}` within {timeout_s:g} s, though it is there; "
            "see what holds it up"
        )

    def go(self) -> None:
        """Let an order that waits for the word go on."""
        self._agent.send(Go(self._number))

    def stop(self) -> None:
        """Ask the device to end this order early."""
        self._agent.send(Stop(self._number))
