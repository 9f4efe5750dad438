"""How many images the runs of a race needed to its target."""

import pytest

from benchmarks.racing.efficiency import Reached
from benchmarks.racing.images import reached, steps_to
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


def test_who_missed_the_target_is_told_apart_from_who_was_in_no_race() -> None:
    others = [failed("baseline"), trial("baseline", 0.01, 0.8), run("torch-ddp", curve=CURVE)]
    found = reached([*others, run("gaia", curve=CURVE[:2])], race(), 60_000, MEMBERS)
    assert found == [Reached("here", 0, "gaia", 4, None)]
    assert reached([run("gaia", curve=CURVE)], race(file="another.toml"), 60_000, MEMBERS) == []
