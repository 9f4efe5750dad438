"""A run is watched until its orders have ended; Ctrl-C stops it, and a second ends it at once."""

import queue
from collections.abc import Callable
from typing import Any

import pytest

from planner.agents.call import Event
from planner.run.life import Life
from planner.run.supervisor import Signals


class PressedKeys(queue.Queue[tuple[str, Event | None]]):
    """Ctrl-C is pressed in the first waits for an event, so often."""

    def __init__(self, presses: int) -> None:
        super().__init__()
        self._presses = presses

    def get(self, block: bool = True, timeout: float | None = None) -> tuple[str, Event | None]:
        if self._presses:
            self._presses -= 1
            raise KeyboardInterrupt
        return super().get(block=False)


class WaitingOrder:
    """An order at work, which records why it was told to stop."""

    ended = False
    stopped_by: str | None = None

    def stop(self, reason: str) -> None:
        self.stopped_by = reason


class Recorded(Life[str]):
    """Has one order, and tells which events came before the result."""

    stop_s = 5.0

    def __init__(self, presses: int = 0, clock: Callable[[], float] = lambda: 0.0) -> None:
        super().__init__(Signals(events=PressedKeys(presses)), clock)
        self.order: Any = WaitingOrder()
        self.orders["tx1"] = self.order
        self.heard: list[Event | None] = []

    def handle(self, source: str, event: Event | None) -> None:
        self.heard.append(event)
        if event == "saving":
            self.wait_on()

    def outcome(self, ended: bool) -> str | None:
        return "ended" if ended else None

    def say_stopping(self) -> None:
        self.heard.append("stopping")

    def late(self) -> str:
        return "late"


def test_the_result_comes_after_all_events() -> None:
    life = Recorded()
    life.order.ended = True
    for event in ("one", "two", None):
        life.signals.events.put(("tx1", event))
    assert (life.watch(), life.heard) == ("ended", ["one", "two", None])


def test_an_order_that_does_not_stop_in_time_is_late() -> None:
    times_s = iter((0.0, 4.0, 6.0))
    life = Recorded(presses=1, clock=lambda: next(times_s))
    assert (life.watch(), life.heard, life.order.stopped_by) == ("late", ["stopping"], "Ctrl-C")


def test_an_order_that_says_that_it_saves_is_waited_for_from_then_on() -> None:
    times_s = iter((0.0, 4.0, 4.0, 8.0, 10.0))
    life = Recorded(presses=1, clock=lambda: next(times_s))
    life.signals.events.put(("tx1", "saving"))
    assert life.watch() == "late"
    assert next(times_s, None) is None


def test_the_first_ctrl_c_after_a_failure_waits_for_what_is_being_saved() -> None:
    times_s = iter((0.0, 4.0, 6.0))
    life = Recorded(presses=1, clock=lambda: next(times_s))
    life.signals.over.set()
    life.stop("a member has failed")
    assert (life.watch(), life.heard, life.order.stopped_by) == ("late", ["stopping"], "a member has failed")
    assert not life.interrupted


def test_an_order_that_has_ended_is_not_told_to_stop() -> None:
    life = Recorded(presses=1)
    life.order.ended = True
    assert (life.watch(), life.order.stopped_by) == ("ended", None)


def test_a_second_ctrl_c_waits_for_nobody() -> None:
    life = Recorded(presses=2)
    with pytest.raises(KeyboardInterrupt):
        life.watch()
