import math

import pytest

from planner.wattage import idle_watts, wattage
from profilers.records import PowerReading, Window
from tests.planner import profiles


def reading(covers: str, watts: float | None, source: str = "sensor", stdev: float = 0.0) -> PowerReading:
    return PowerReading(covers, source, covers, watts, stdev, 100)


def windows(**covers: tuple[float | None, float | None]) -> tuple[Window, Window]:
    idle = tuple(reading(cover, watts[0]) for cover, watts in covers.items())
    busy = tuple(reading(cover, watts[1]) for cover, watts in covers.items())
    return Window(1.0, {}, idle), Window(1.0, {}, busy)


@pytest.mark.parametrize(
    ("covers", "expected"),
    [
        ({"gpu": (5, 50), "wall": (20, 90), "cpu": (3, 8)}, (20, 90, "sensor: wall")),
        ({"module": (4, 12), "board": (5, 15), "gpu": (1, 6)}, (5, 15, "sensor: board")),
        ({"rail": (1, 2), "module": (4, 12)}, (4, 12, "sensor: module")),
        ({"gpu": (5, 50), "cpu": (3, 8)}, (8, 58, "sensor: gpu + cpu")),
        ({"gpu": (5, 50)}, (5, 50, "sensor: gpu only")),
        ({"cpu": (3, 8), "rail": (1, 1)}, (3, 8, "sensor: cpu only")),
        ({"wall": (None, 90), "gpu": (5, 50)}, (5, 50, "sensor: gpu only")),
    ],
)
def test_the_sensor_that_covers_most_is_the_device_total(covers: dict, expected: tuple) -> None:
    idle, busy = windows(**covers)
    step = profiles.step(window=busy)
    found = wattage(profiles.device(step)._replace(idle=idle), step)
    assert (found.idle_w, found.busy_w, found.source) == expected


def test_without_sensors_the_fleet_file_counts_and_then_nothing() -> None:
    step = profiles.step()
    assert wattage(profiles.device(step, 7.0, 15.0), step)[:2] == (7.0, 15.0)
    unknown = wattage(profiles.device(step, None, 15.0), step)
    assert math.isnan(unknown.busy_w)
    assert unknown.source == "unavailable"


def test_what_is_emulated_says_so() -> None:
    step = profiles.step(slowdown=2.0)
    assert wattage(profiles.device(step), step).source.startswith("emulated (slowdown 2), fleet file")
    idle, busy = (Window(1.0, {}, (reading("wall", watts, "emulated"),)) for watts in (3.0, 9.0))
    step = profiles.step(window=busy)
    assert wattage(profiles.device(step)._replace(idle=idle), step).source == "emulated: wall"


def test_the_spread_of_the_samples_gives_the_error_of_their_mean() -> None:
    idle, busy = Window(1.0, {}, (reading("wall", 10),)), Window(1.0, {}, (reading("wall", 50, stdev=5.0),))
    step = profiles.step(window=busy)
    assert wattage(profiles.device(step)._replace(idle=idle), step).error == pytest.approx(0.01)


def test_idle_watts_are_measured_or_declared() -> None:
    device = profiles.device()
    assert idle_watts(device) == 10.0
    assert idle_watts(device._replace(idle=windows(board=(4, 4))[0])) == 4.0
    assert math.isnan(idle_watts(profiles.device(idle_w=None)._replace(idle=None)))


def test_idle_watts_alone_are_known_though_busy_ones_are_not() -> None:
    device = profiles.device(profiles.step(0.5), idle_w=None)
    device.device.update(idle_watts=5.0, max_watts=None)
    found = wattage(device, device.steps[0])
    assert found.idle_w == 5.0
    assert math.isnan(found.busy_w)
