"""Devices on one machine are timed alone and beside one another, in an order that none can miss."""

from typing import Any

import pytest

from backends.protocol.events import MEASURED, WAITING, StepTimed
from planner.errors import AgentError, DeviceLostError, PlannerError
from planner.profile.shared_machine import Conductor, slowed
from profilers.records import Repeat, RepeatsBeside
from tests.planner import profiles


def repeat(gradient_s: float, count: int = 10) -> Repeat:
    each = profiles.seconds(gradient_s, count=count)
    return Repeat(each, profiles.seconds(0.0, count=count), profiles.seconds(0.01, count=count), gradient_s / 2)


FOUND = RepeatsBeside(repeat(0.1), repeat(0.13), repeat(0.12))


class Device:
    """A call that goes through its stages as an agent does, and notes who computes beside it.

    fails_at: the number of the word at which it fails, from 0.
    """

    def __init__(self, name: str, log: list[str], fails_at: int = 99) -> None:
        self._name, self._log, self._fails_at = name, log, fails_at
        self._words = 0
        self._events = [WAITING]
        self.ended = self.stopped = False

    def event(self, timeout_s: float) -> StepTimed | None:
        if self._events:
            return StepTimed(self._events.pop(0), 1, 0.1, 0.0, 1.0)
        assert self.ended, f"{self._name} waits for ever"
        return None

    def go(self) -> None:
        if self._words >= self._fails_at:
            self.ended = True
            raise DeviceLostError(f"{self._name}: gone")
        stage = ("alone", "beside", "rests", "alone")[self._words]
        self._log.append(f"{self._name} {stage}")
        self._events += {0: ["again", WAITING], 1: ["again", MEASURED], 2: [WAITING], 3: ["again"]}[self._words]
        self.ended = self._words == 3
        self._words += 1

    def result(self, timeout_s: float) -> RepeatsBeside:
        if self._words < 4:
            raise AgentError(f"{self._name}: failed")
        return FOUND

    def stop(self) -> None:
        self.stopped = True


def conducted(devices: dict[str, Any]) -> tuple[dict[str, RepeatsBeside], dict[str, str]]:
    failures: dict[str, str] = {}

    def on_failure(name: str, error: PlannerError) -> None:
        failures[name] = str(error)

    return Conductor(devices, lambda name, event: None, on_failure).run(), failures


def test_each_is_timed_alone_then_all_together_then_each_alone_again() -> None:
    log: list[str] = []
    found, failures = conducted({name: Device(name, log) for name in "ab"})
    assert log == ["a alone", "b alone", "a beside", "b beside", "a rests", "b rests", "a alone", "b alone"]
    assert found == {"a": FOUND, "b": FOUND} and not failures


@pytest.mark.parametrize("fails_at", [0, 1, 2, 3])
def test_one_that_fails_drops_out_and_the_others_go_on(fails_at: int) -> None:
    log: list[str] = []
    found, failures = conducted({"a": Device("a", log), "b": Device("b", log, fails_at), "c": Device("c", log)})
    assert found.keys() == {"a", "c"} and failures == {"b": "b: failed"}


def test_what_was_timed_at_first_does_not_count() -> None:
    made = slowed(profiles.step(0.5), FOUND, ["b"])
    assert set(made.gradient_s.values) == {0.1, 0.12} and len(made.gradient_s.values) == 20
    assert made.repeats == (pytest.approx(0.11), pytest.approx(0.13))
    assert made.beside is not None and made.beside.names == ("b",) and set(made.beside.gradient_s.values) == {0.13}
    assert made.cpu_s_per_step == pytest.approx(0.055)
