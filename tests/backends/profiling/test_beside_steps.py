"""Beside timed steps a report is made every second, and the whole window is told at the end."""

import functools
import json
import threading
from typing import Any

import pytest

from backends.profiling import beside_steps
from backends.profiling.beside_steps import BesideSteps
from backends.training.telemetry import TelemetrySender
from tests.running import HANG_S


class Reports:
    """Those that were made; ``two`` is set once there are two."""

    def __init__(self) -> None:
        self.made: list[dict[str, Any]] = []
        self.two = threading.Event()
        self._encode = beside_steps.encode

    def encode(self, event: Any) -> dict[str, Any]:
        self.made.append(self._encode(event))
        if len(self.made) > 1:
            self.two.set()
        return self.made[-1]


def test_the_window_and_the_speed_are_of_all_that_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside_steps, "TelemetrySender", functools.partial(TelemetrySender, interval_s=0.01))
    beside = BesideSteps()
    for _ in range(2):
        reports = Reports()
        monkeypatch.setattr(beside_steps, "encode", reports.encode)
        beside.start()
        assert reports.two.wait(HANG_S)
        window, speed = beside.stop()
        told = [each["window"]["duration_s"] for each in reports.made]
        assert len(set(told[:-1])) == 1, "a report is as long in every second"
        assert told == sorted(told) and window.duration_s == told[-1]
        assert speed.rounds == max(each["speed"]["rounds"] for each in reports.made) >= 1
        assert json.dumps(reports.made)
