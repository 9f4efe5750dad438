"""Power sensors of a window: which one counts, errors, averages and contradictions."""

import pytest

from planner.profile.power_readings import (
    as_integral,
    disagreements,
    flagged,
    parts_watts,
    rejected,
    unavailable,
    uncertainty,
    whole_reading,
    window_watts,
)
from planner.provenance import Provenance
from profilers.records.readings import PowerReading, Window

BROKEN = PowerReading("plug", "unavailable", "wall", None, None, 9, "it repeats one value")


def reading(covers: str, watts: float | None, source: str = "sensor") -> PowerReading:
    return PowerReading(covers, source, covers, watts, 0.0, 100)


def window(**covers: float | None) -> Window:
    return Window(1.0, {}, tuple(reading(cover, watts) for cover, watts in covers.items()))


def test_the_sensor_that_covers_most_counts_if_it_works() -> None:
    read = window_watts(window(gpu=50, board=60))
    assert read == (60, None, Provenance("sensor", ("board",)))
    assert window_watts(window(gpu=0)) is None


def test_sensors_that_do_not_work_are_listed_with_the_reason() -> None:
    broken = Window(1.0, {}, (BROKEN,))
    assert flagged(broken) == ("plug: it repeats one value",)
    assert flagged(None) == ()
    assert "(plug: it repeats one value)" in unavailable(broken).detail
    assert "(none was found)" in unavailable(window()).detail


@pytest.mark.parametrize("watts", [0.0, -230.5])
def test_a_sensor_that_reads_no_watts_is_told_with_them(watts: float) -> None:
    told = f"wall (wall) {watts:.3g} W: no device trains on that; see how it is connected"
    assert rejected(window(wall=10), window(wall=watts, rail=0)) == (told,)
    assert f"no sensor that works ({told})" in unavailable(window(wall=watts)).detail


def test_errors_of_parts_add_up() -> None:
    parts = (reading("gpu", 30.0)._replace(relative_error=0.1), reading("cpu", 40.0)._replace(relative_error=0.1))
    read = window_watts(Window(1.0, {}, parts))
    assert read is not None
    assert read.error == pytest.approx(5 / 70)
    assert uncertainty(read.error) == pytest.approx(1.96 * 5 / 70, rel=1e-3)
    assert uncertainty(None) is uncertainty(0.0) is None


def found(**covers: float) -> tuple[str, ...]:
    return disagreements(window(**covers))


def test_sensors_that_agree_are_not_mentioned() -> None:
    assert found(wall=100.0, board=90.0, module=80.0, gpu=50.0, cpu=20.0) == ()
    assert found(wall=100.0, board=104.0) == ()


@pytest.mark.parametrize(
    ("covers", "note"),
    [
        ({"wall": 100.0, "board": 106.0}, "board (board) 106 W exceeds wall (wall) 100 W, which contains it"),
        ({"board": 10.0, "module": 12.0}, "module (module) 12 W exceeds board (board) 10 W, which contains it"),
        ({"wall": 100.0, "gpu": 120.0}, "gpu (gpu) 120 W exceeds wall (wall) 100 W, which contains it"),
        (
            {"board": 100.0, "gpu": 60.0, "cpu": 50.0},
            "gpu (gpu) 60 W + cpu (cpu) 50 W exceeds board (board) 100 W, which contains it",
        ),
    ],
)
def test_a_part_that_exceeds_the_whole_is_mentioned(covers: dict[str, float], note: str) -> None:
    assert found(**covers) == (note,)


def test_two_sensors_of_the_same_that_differ_are_mentioned_and_two_gpus_are_not() -> None:
    twice = tuple(reading("wall", watts)._replace(sensor=f"plug{watts:g}") for watts in (100.0, 106.0))
    assert disagreements(Window(1.0, {}, twice)) == (
        "sensors of the wall disagree: wall (plug100) 100 W, wall (plug106) 106 W",
    )
    gpus = tuple(reading("gpu", watts)._replace(sensor=f"nvml:{watts:g}") for watts in (10.0, 200.0))
    assert disagreements(Window(1.0, {}, gpus)) == ()


def test_a_whole_that_its_parts_exceed_is_not_the_watts_of_a_window() -> None:
    read = window_watts(window(board=5, cpu=65))
    assert read is not None and (read.watts, read.provenance.covers) == (65, ("cpu",))
    assert whole_reading(window(board=5, module=12)) == reading("module", 12)


def test_one_of_two_processors_is_not_the_watts_of_a_window() -> None:
    both = Window(1.0, {}, (reading("cpu", 100), reading("cpu", None)._replace(sensor="other", reason="gone")))
    assert window_watts(both) is None


def test_a_sensor_without_watts_contradicts_no_other() -> None:
    assert disagreements(Window(1.0, {}, (reading("wall", None), reading("gpu", 50.0)))) == ()


def test_the_joules_of_a_window_itself_are_surer_than_the_mean_of_others_like_it() -> None:
    read = PowerReading("nvml:0", "counter", "gpu", 438.0, 260.0, 90, relative_error=0.43, integral_error=0.003)
    found = parts_watts(as_integral(Window(9.7, {}, (read,))))
    assert found is not None and found.error == pytest.approx(0.003)
