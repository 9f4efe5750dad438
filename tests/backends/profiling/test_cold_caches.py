"""Work that begins with cold caches is timed by the clock of its thread."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from backends.profiling import cold_caches
from backends.profiling.cold_caches import ColdCaches, ColdTimer


def test_seconds_are_those_of_a_device_with_a_share_of_a_core_after_its_caches_are_cold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[str] = []
    clock = iter([1.0, 1.5])

    def thread_cpu_s() -> float:
        done.append("clock")
        return next(clock)

    monkeypatch.setattr(cold_caches, "thread_cpu_s", thread_cpu_s)
    monkeypatch.setattr(cold_caches, "available_cores", lambda: 0.25)
    timer = ColdTimer(lambda: done.append("cold"))
    assert timer.timed(lambda *args: done.append("work") or args, 2, 3) == ((2, 3), 2.0)
    assert done == ["cold", "clock", "work", "clock"]


@pytest.mark.parametrize("gradient_s, by_gradient", [(0.5, True), (2.0, False)])
def test_caches_are_left_by_a_gradient_or_by_reading_whichever_takes_less(
    monkeypatch: pytest.MonkeyPatch, gradient_s: float, by_gradient: bool
) -> None:
    clock = SimpleNamespace(now_s=0.0)

    def working(seconds: float) -> Callable[..., None]:
        def work(*_: object) -> None:
            clock.now_s += seconds

        return work

    monkeypatch.setattr(cold_caches, "time", SimpleNamespace(process_time=lambda: clock.now_s))
    monkeypatch.setattr(ColdCaches, "leave", working(1.0))
    gradient = working(gradient_s)
    assert (cold_caches.as_steps_leave(gradient) is gradient) == by_gradient
