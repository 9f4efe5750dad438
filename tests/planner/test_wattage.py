import math

import pytest

from planner.wattage import emulated, idle_watts, partial, wattage, window_watts
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
        ({"gpu": (5, 50), "cpu": (3, 8)}, (8, 58, "sensor: gpu + cpu only")),
        ({"gpu": (5, 50)}, (5, 50, "sensor: gpu only")),
        ({"cpu": (3, 8), "rail": (1, 1)}, (3, 8, "sensor: cpu only")),
        ({"wall": (None, 90), "gpu": (5, 50)}, (5, 50, "sensor: gpu only")),
        ({"wall": (0, 0), "gpu": (5, 50)}, (5, 50, "sensor: gpu only")),
        ({"wall": (20, 0), "gpu": (5, 50)}, (5, 50, "sensor: gpu only")),
        ({"wall": (0, 90), "gpu": (5, 50)}, (5, 50, "sensor: gpu only")),
    ],
)
def test_the_sensor_that_covers_most_is_the_device_total(covers: dict, expected: tuple) -> None:
    idle, busy = windows(**covers)
    step = profiles.step(window=busy)
    found = wattage(profiles.device(step, None, None)._replace(idle=idle), step)
    assert (found.idle_w, found.busy_w, found.source) == expected


@pytest.mark.parametrize(
    ("covers", "expected"),
    [
        ({"wall": (20, 90)}, (20, 90, "sensor: wall")),
        ({"gpu": (5, 50), "cpu": (3, 8)}, (40, 140, "fleet file: idle and maximum")),
        ({"wall": (0, 0)}, (40, 140, "fleet file: idle and maximum")),
    ],
)
def test_the_fleet_file_s_watts_come_behind_a_sensor_of_the_whole_and_before_one_of_a_part(
    covers: dict, expected: tuple
) -> None:
    idle, busy = windows(**covers)
    step = profiles.step(window=busy)
    device = profiles.device(step, 40.0, 140.0)._replace(idle=idle)
    found = wattage(device, step)
    assert (found.idle_w, found.busy_w, found.source) == expected
    assert idle_watts(device) == expected[0]


def test_a_window_is_read_from_what_covers_most() -> None:
    read = window_watts(windows(gpu=(5, 50), board=(7, 60))[1])
    assert read == (60, "sensor: board")
    assert window_watts(windows(gpu=(5, 0))[1]) is None


def test_sources_tell_what_is_partial_and_what_is_emulated() -> None:
    assert partial("emulated (slowdown 2), sensor: gpu + cpu only")
    assert not partial("sensor: wall")
    assert emulated("counter and emulated: gpu + cpu only")
    assert not emulated("sensor: wall")


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


def test_the_spread_of_the_samples_gives_the_errors_of_their_means() -> None:
    idle, busy = (Window(1.0, {}, (reading("wall", w, stdev=s),)) for w, s in ((10, 4.0), (50, 5.0)))
    step = profiles.step(window=busy)
    found = wattage(profiles.device(step)._replace(idle=idle), step)
    assert (found.idle_error, found.busy_error) == pytest.approx((0.04, 0.01))


def test_idle_watts_are_measured_or_declared() -> None:
    device = profiles.device()
    assert idle_watts(device) == 10.0
    assert idle_watts(device._replace(idle=windows(board=(4, 4))[0])) == 4.0
    assert idle_watts(profiles.device(idle_w=None)._replace(idle=windows(gpu=(4, 4))[0])) == 4.0
    assert math.isnan(idle_watts(profiles.device(idle_w=None)._replace(idle=None)))


def test_idle_watts_alone_are_known_though_busy_ones_are_not() -> None:
    device = profiles.device(profiles.step(0.5), idle_w=None)
    device.device.update(idle_watts=5.0, max_watts=None)
    found = wattage(device, device.steps[0])
    assert found.idle_w == 5.0
    assert math.isnan(found.busy_w)
