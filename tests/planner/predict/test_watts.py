"""Idle and busy watts of a device: sensors of the whole, the fleet file, sensors of parts."""

import math

import pytest

from planner.predict.watts import idle_watts, wattage
from planner.provenance import Provenance
from profilers.records.readings import PowerReading, Window
from tests.planner import profiles

NAMEPLATE = Provenance("nameplate", ("board",), detail="fleet file")


def sensed(*covers: str) -> Provenance:
    return Provenance("sensor", covers)


def reading(covers: str, watts: float | None, source: str = "sensor", stdev: float = 0.0) -> PowerReading:
    return PowerReading(covers, source, covers, watts, stdev, 100)


def windows(**covers: tuple[float | None, float | None]) -> tuple[Window, Window]:
    idle = tuple(reading(cover, watts[0]) for cover, watts in covers.items())
    busy = tuple(reading(cover, watts[1]) for cover, watts in covers.items())
    return Window(1.0, {}, idle), Window(1.0, {}, busy)


def sensed_total(covers: dict) -> tuple:
    """Idle and busy watts of a device by sensors of such coverage, and where they come from."""
    idle, busy = windows(**covers)
    step = profiles.step(window=busy)
    found = wattage(profiles.device(step, None, None)._replace(idle=idle), step)
    return found.idle_w, found.busy_w, found.provenance


@pytest.mark.parametrize(
    ("covers", "expected"),
    [
        ({"gpu": (5, 50), "wall": (20, 90), "cpu": (3, 8)}, (20, 90, sensed("wall"))),
        ({"module": (4, 12), "board": (5, 15), "gpu": (1, 6)}, (5, 15, sensed("board"))),
        ({"rail": (1, 2), "module": (4, 12)}, (4, 12, sensed("module"))),
        ({"gpu": (5, 50), "cpu": (3, 8)}, (8, 58, sensed("gpu", "cpu"))),
        ({"gpu": (5, 50)}, (5, 50, sensed("gpu"))),
        ({"cpu": (3, 8), "rail": (1, 1)}, (3, 8, sensed("cpu"))),
        ({"wall": (None, 90), "gpu": (5, 50)}, (5, 50, sensed("gpu"))),
        ({"wall": (0, 0), "gpu": (5, 50)}, (5, 50, sensed("gpu"))),
        ({"wall": (20, 0), "gpu": (5, 50)}, (5, 50, sensed("gpu"))),
        ({"wall": (0, 90), "gpu": (5, 50)}, (5, 50, sensed("gpu"))),
    ],
)
def test_the_sensor_that_covers_most_is_the_device_total(covers: dict, expected: tuple) -> None:
    assert sensed_total(covers) == expected


@pytest.mark.parametrize(
    ("covers", "expected"),
    [
        ({"board": (2, 5), "cpu": (10, 65)}, (10, 65, sensed("cpu"))),
        ({"board": (20, 30), "cpu": (10, 65)}, (10, 65, sensed("cpu"))),
        ({"board": (5, 12), "module": (4, 15), "cpu": (1, 6)}, (4, 15, sensed("module"))),
        ({"wall": (40, 90), "gpu": (20, 120), "cpu": (5, 10)}, (25, 130, sensed("gpu", "cpu"))),
        ({"wall": (40, 90), "board": (30, 92)}, (40, 90, sensed("wall"))),
    ],
)
def test_a_whole_that_its_parts_exceed_is_none(covers: dict, expected: tuple) -> None:
    assert sensed_total(covers) == expected


@pytest.mark.parametrize("covers", [{"module": (20, 1)}, {"wall": (20, 18.9)}, {"gpu": (20, 5), "cpu": (9, 10)}])
def test_a_sensor_that_reads_more_idle_than_in_training_is_not_used(covers: dict) -> None:
    idle, busy = windows(**covers)
    step = profiles.step(window=busy)
    found = wattage(profiles.device(step, None, None)._replace(idle=idle), step)
    assert math.isnan(found.busy_w)
    idle_w, busy_w = next(iter(covers.values()))
    assert f"{busy_w:.3g} W: it reads more idle, {idle_w} W" in found.provenance.detail
    assert wattage(profiles.device(step, 7.0, 15.0)._replace(idle=idle), step)[:2] == (7.0, 15.0)


def test_a_processor_that_rests_while_its_gpu_trains_is_counted() -> None:
    idle, busy = windows(cpu=(20, 15), gpu=(10, 200))
    step = profiles.step(window=busy)
    found = wattage(profiles.device(step, None, None)._replace(idle=idle), step)
    assert (found.idle_w, found.busy_w) == (30, 215)


@pytest.mark.parametrize(
    ("one", "other", "part"),
    [
        ((20, 100), (20, None), "cpu"),
        ((20, 100), (None, 100), "cpu"),
        ((20, 100), (None, None), "cpu"),
        ((30, 300), (30, None), "gpu"),
    ],
)
def test_a_sum_of_some_of_several_parts_is_no_sum(one: tuple, other: tuple, part: str) -> None:
    idle, busy = (
        Window(1.0, {}, (reading(part, a)._replace(sensor="0"), reading(part, b)._replace(sensor="1")))
        for a, b in zip(one, other, strict=True)
    )
    step = profiles.step(window=busy)
    assert math.isnan(wattage(profiles.device(step, None, None)._replace(idle=idle), step).busy_w)


def test_a_part_that_works_in_training_only_leaves_no_sum_of_the_others() -> None:
    idle, busy = windows(cpu=(20, 100), gpu=(None, 300))
    step = profiles.step(window=busy)
    assert math.isnan(wattage(profiles.device(step, None, None)._replace(idle=idle), step).busy_w)


@pytest.mark.parametrize(
    ("covers", "expected"),
    [
        ({"wall": (20, 90)}, (20, 90, sensed("wall"))),
        ({"gpu": (5, 50), "cpu": (3, 8)}, (40, 140, NAMEPLATE)),
        ({"wall": (0, 0)}, (40, 140, NAMEPLATE)),
    ],
)
def test_the_fleet_file_s_watts_come_behind_a_sensor_of_the_whole_and_before_one_of_a_part(
    covers: dict, expected: tuple
) -> None:
    idle, busy = windows(**covers)
    step = profiles.step(window=busy)
    device = profiles.device(step, 40.0, 140.0)._replace(idle=idle)
    found = wattage(device, step)
    assert (found.idle_w, found.busy_w, found.provenance) == expected
    assert idle_watts(device) == expected[0]


def test_without_sensors_the_fleet_file_counts_and_then_nothing() -> None:
    step = profiles.step()
    assert wattage(profiles.device(step, 7.0, 15.0), step)[:2] == (7.0, 15.0)
    unknown = wattage(profiles.device(step, None, 15.0), step)
    assert math.isnan(unknown.busy_w)
    assert unknown.provenance.kind == "unavailable"
    assert "no idle_watts and max_watts in the fleet file" in unknown.provenance.detail


def test_what_is_emulated_says_so() -> None:
    step = profiles.step(slowdown=2.0)
    found = wattage(profiles.device(step), step).provenance
    assert found == Provenance("nameplate", ("board",), True, "fleet file, slowdown 2")


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


def test_a_sensor_that_says_the_same_idle_and_under_load_does_not_work() -> None:
    idle, busy = windows(wall=(20, 20), gpu=(5, 50))
    step = profiles.step(window=busy)
    found = wattage(profiles.device(step, None, None)._replace(idle=idle), step)
    assert (found.busy_w, found.provenance) == (50, sensed("gpu"))
    assert idle_watts(profiles.device(idle_w=None)._replace(idle=idle)) == 20


def test_why_no_sensor_works_stands_where_the_watts_would() -> None:
    broken = PowerReading("plug", "unavailable", "wall", None, None, 9, "it repeats one value; flagged and not used")
    step = profiles.step(window=Window(1.0, {}, (broken,)))
    assert "plug: it repeats one value" in wattage(profiles.device(step, None, None), step).provenance.detail
