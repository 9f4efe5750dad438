"""Devices on one kernel are told to begin at the same time, by calls that are made up."""

from typing import Any, cast

import pytest

from backends.protocol.events import StepTimed
from planner.agents.call import Call
from planner.errors import AgentError
from planner.profile.contention import contention, together, window_s
from profilers.records.steps import Repeat
from tests.planner import profiles

NONE = profiles.seconds(0.0)


class Device:
    """A device that becomes ready after some events, or fails before."""

    def __init__(self, told: list[str], name: str, stages: tuple[str, ...], fails: bool = False) -> None:
        self._told, self._name, self._stages, self._fails = told, name, list(stages), fails
        self.ended = False

    def event(self, silence_s: float) -> StepTimed | None:
        if not self._stages:
            self.ended = True
            return None
        stage = self._stages.pop(0)
        self._told.append(f"{self._name} {stage}")
        return StepTimed(stage, 1, 0.1)

    def go(self) -> None:
        self._told.append(f"{self._name} goes")

    def result(self, silence_s: float) -> Any:
        if self._fails:
            raise AgentError(f"{self._name}: no memory")
        return Repeat(profiles.seconds(0.2), NONE, NONE, 0.1)


def calls(*devices: Device) -> dict[str, Call]:
    return {device._name: cast(Call, device) for device in devices}


def test_steps_count_once_all_devices_make_some() -> None:
    told: list[str] = []
    found, failed = together(
        calls(Device(told, "a", ("warm-up", "ready")), Device(told, "b", ("warm-up", "warm-up", "ready"))), 1.0
    )
    assert told[-2:] == ["a goes", "b goes"] and set(told[:-2]) >= {"a ready", "b ready"}
    assert set(found) == {"a", "b"} and failed == {}


def test_a_device_that_fails_before_it_is_ready_holds_up_no_other() -> None:
    told: list[str] = []
    found, failed = together(
        calls(
            Device(told, "a", ("warm-up",), fails=True), Device(told, "b", ("ready",)), Device(told, "c", ("ready",))
        ),
        1.0,
    )
    assert set(found) == {"b", "c"} and str(failed["a"]) == "a: no memory"
    assert "a goes" not in told


def test_the_slowest_device_makes_three_steps_at_least() -> None:
    assert window_s([0.01, 0.1]) == 1.0
    assert window_s([0.01, 2.0]) == 6.0


def test_contention_is_the_time_among_others_over_the_time_alone() -> None:
    found = contention("ab", profiles.seconds(0.1), profiles.seconds(0.14, spread=0.1))
    assert (found.names, found.factor) == (("a", "b"), pytest.approx(1.4))
    assert 0.0 < found.error < 0.1
