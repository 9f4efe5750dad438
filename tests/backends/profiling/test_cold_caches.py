"""Work that begins with cold caches is timed by the processor's clock."""

from types import SimpleNamespace

import pytest

from backends.profiling import cold_caches
from backends.profiling.cold_caches import ColdCaches, ColdTimer


def test_seconds_are_those_of_a_device_with_a_share_of_a_core_after_its_caches_are_cold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[str] = []
    clock = iter([1.0, 1.5])

    def process_time() -> float:
        done.append("clock")
        return next(clock)

    monkeypatch.setattr(cold_caches, "time", SimpleNamespace(process_time=process_time))
    monkeypatch.setattr(cold_caches, "available_cores", lambda: 0.25)
    monkeypatch.setattr(ColdCaches, "leave", lambda caches: done.append("cold"))
    assert ColdTimer().timed(lambda *args: done.append("work") or args, 2, 3) == ((2, 3), 2.0)
    assert done == ["cold", "clock", "work", "clock"]
