"""What images are worth, from the runs of a race."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from planner import worth
from planner.decode import load, save
from planner.errors import RecordError
from planner.worth import NONE, Reached, Source, Worth, measured, newest, worths

EQUAL = ("baseline", "allreduce")
SOURCE = Source("cipher", "fashion-mnist", 3000, 32, 0.7, ("net-a",), (6,), "2026-11-21")


def runs(place: str, seed: int, **images: float | None) -> list[Reached]:
    return [Reached(place, seed, name, number) for name, number in images.items()]


def same(found: Sequence[Worth], *wanted: Worth) -> bool:
    return [each[0] for each in found] == [each[0] for each in wanted] and all(
        one[1:] == pytest.approx(other[1:]) for one, other in zip(found, wanted, strict=True)
    )


def test_twice_the_images_are_worth_half() -> None:
    assert same(measured(runs("net", 0, baseline=1000.0, hop=2000.0), EQUAL), Worth("hop", 0.5, 0.5, 0.5, 1, 0))


def test_runs_are_compared_in_the_same_place_with_the_same_seed() -> None:
    several = runs("net", 0, baseline=1000.0, hop=2000.0) + runs("net", 1, baseline=3000.0, hop=3000.0)
    several += runs("cpu", 0, baseline=500.0, hop=2000.0)
    (found,) = measured(several, EQUAL)
    assert (found.least, found.most, found.pairs) == (pytest.approx(0.25), pytest.approx(1.0), 3)
    assert found.worth == pytest.approx((0.5 * 1.0 * 0.25) ** (1 / 3))


def test_several_that_are_equal_are_one_measure_and_have_no_worth_of_their_own() -> None:
    assert measured(runs("net", 0, baseline=1000.0, allreduce=4000.0, sgp=2000.0), EQUAL)[0].worth == pytest.approx(1.0)


def test_who_misses_the_target_once_is_told_apart() -> None:
    several = runs("net", 0, baseline=1000.0, ako=None, sgp=2000.0)
    several += runs("net", 1, baseline=1000.0, ako=4000.0, sgp=2000.0)
    kept = worths(SOURCE, measured(several, EQUAL))
    assert [each.strategy for each in kept.measured] == ["sgp"]
    assert same(kept.missed, Worth("ako", 0.25, 0.25, 0.25, 2, 1))


def test_where_synchronous_workers_miss_it_nothing_is_known() -> None:
    assert measured(runs("net", 0, baseline=None, hop=2000.0), EQUAL) == []
    assert measured(runs("net", 0, hop=2000.0), EQUAL) == []
    assert measured(runs("net", 0, baseline=1000.0, hop=None), EQUAL) == [Worth("hop", 0.0, 0.0, 0.0, 1, 1)]


def test_the_working_folder_s_file_comes_before_the_shipped_one(tmp_path: Path) -> None:
    assert newest(tmp_path) == load(worth.Worths, worth.SHIPPED)
    own = NONE._replace(source=SOURCE, measured=(Worth("hop", 0.5, 0.4, 0.6, 3, 0),))
    save(own, tmp_path / "worth.json")
    assert newest(tmp_path) == own


def test_a_file_that_does_not_fit_is_named(tmp_path: Path) -> None:
    (tmp_path / "worth.json").write_text(json.dumps({"schema": 1, "source": None, "measured": [{}], "missed": []}))
    with pytest.raises(RecordError, match=r"worth.json: measured\[0\].*benchmarks/worth.py"):
        newest(tmp_path)


def test_what_is_shipped_names_where_it_was_measured_or_holds_nothing() -> None:
    shipped = load(worth.Worths, worth.SHIPPED)
    assert shipped.source is not None or shipped == NONE
    assert all(each.pairs > 0 and each.least <= each.worth <= each.most for each in shipped.measured)
