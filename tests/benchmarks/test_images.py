"""How many images the runs of a race needed to its target."""

from benchmarks.racing.efficiency import Reached
from benchmarks.racing.images import reached
from benchmarks.racing.records import Point

from .made import failed, race, run, trial

#: 0.7 is half-way from 40 steps to 60.
CURVE = (Point(2.0, 20, 0.3, "a"), Point(4.0, 40, 0.6, "a"), Point(6.0, 60, 0.8, "b"), Point(8.0, 80, 0.9, "a"))
MEMBERS = {"here": 4, "there": 6}


def test_who_missed_the_target_is_told_apart_from_who_was_in_no_race() -> None:
    others = [failed("baseline"), trial("baseline", 0.01, 0.8), run("torch-ddp", curve=CURVE)]
    found = reached([*others, run("gaia", curve=CURVE[:2])], race(), 60_000, MEMBERS)
    assert found == [Reached("here", 0, "gaia", 4, None)]
    assert reached([run("gaia", curve=CURVE)], race(file="another.toml"), 60_000, MEMBERS) == []
