"""How many images the runs of a race needed to its target."""

from pathlib import Path

import pytest

from benchmarks.racing.efficiency import Reached
from benchmarks.racing.figures import Entry
from benchmarks.racing.images import devices, is_of, reached, steps_to
from benchmarks.racing.racefile import load
from benchmarks.racing.records import Point

from .made import failed, race, run, trial

#: 0.7 is half-way from 40 steps to 60.
CURVE = (Point(2.0, 20, 0.3, "a"), Point(4.0, 40, 0.6, "a"), Point(6.0, 60, 0.8, "b"), Point(8.0, 80, 0.9, "a"))
MEMBERS = {"here": 4, "there": 6}


def test_the_target_lies_on_the_line_between_two_evaluations() -> None:
    assert steps_to(CURVE, 0.7) == pytest.approx(50.0)
    assert steps_to(CURVE, 0.6) == 40.0
    assert steps_to(CURVE, 0.95) is None
    assert steps_to((), 0.5) is None


def test_a_step_is_one_worker_s_batch_and_a_device_alone_is_one_worker() -> None:
    found = reached([run("baseline", curve=CURVE), run("alone", 1, "there", curve=CURVE)], race(), 60_000, MEMBERS)
    assert [each.images for each in found] == pytest.approx([50.0 * 32] * 2)
    assert [each[:4] for each in found] == [("here", 0, "baseline", 4), ("there", 1, "alone", 1)]


def test_batches_that_grow_have_more_images() -> None:
    (found,) = reached([run("dlion", curve=[point._replace(step=100 * point.step) for point in CURVE])], race(), 60_000,
                       MEMBERS)  # fmt: skip
    assert found.images is not None and found.images > 1.5 * 5_000 * 32


def test_who_missed_the_target_is_told_apart_from_who_was_in_no_race() -> None:
    others = [failed("baseline"), trial("baseline", 0.01, 0.8), run("torch-ddp", curve=CURVE)]
    found = reached([*others, run("gaia", curve=CURVE[:2])], race(), 60_000, MEMBERS)
    assert found == [Reached("here", 0, "gaia", 4, None)]
    assert reached([run("gaia", curve=CURVE)], race(file="another.toml"), 60_000, MEMBERS) == []


def test_all_devices_of_an_environment_take_part() -> None:
    path = Path(__file__).parents[2] / "benchmarks" / "racing" / "dlion.toml"
    assert set(devices(load(path)).values()) == {6}


def test_a_device_alone_counts_where_another_as_fast_was_raced() -> None:
    here, there = race().environments
    there = there._replace(alone_in="here")

    def entry(strategy: str, environment: str) -> Entry:
        return Entry("test", environment, strategy, 0.01, (), (), ())

    assert is_of(race(), there, entry("alone", "here"))
    assert not is_of(race(), there, entry("alone", "there"))
    assert is_of(race(), there, entry("fast", "there"))
    assert not is_of(race(), there, entry("fast", "here"))
    assert not is_of(race(), here, entry("alone", "there"))
    assert not is_of(race(file="another.toml"), here, entry("alone", "here"))
