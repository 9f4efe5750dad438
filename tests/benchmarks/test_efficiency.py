"""A race tells the sample efficiency of each strategy, and the critical batch."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.racing.efficiency import ALONE, Reached, critical_batch, measured, of_race
from planner.predict.sample_efficiency import SampleEfficiency, Source, images_factor

EQUAL = ("baseline", "allreduce")
SOURCE = Source("cipher", "fashion-mnist", 3000, 32, 0.7, ("net-a",), (6,), "2026-11-21")


def runs(place: str, seed: int, **images: float | None) -> list[Reached]:
    return [Reached(place, seed, name, 1 if name == ALONE else 6, number) for name, number in images.items()]


def same(found: Sequence[SampleEfficiency], *wanted: SampleEfficiency) -> bool:
    return [each[0] for each in found] == [each[0] for each in wanted] and all(
        one[1:] == pytest.approx(other[1:]) for one, other in zip(found, wanted, strict=True)
    )


def test_runs_are_compared_in_the_same_place_with_the_same_seed() -> None:
    several = runs("net", 0, baseline=1000.0, hop=2000.0) + runs("net", 1, baseline=3000.0, hop=3000.0)
    several += runs("cpu", 0, baseline=500.0, hop=2000.0)
    (found,) = measured(several, EQUAL)
    assert (found.least, found.most, found.pairs) == (pytest.approx(0.25), pytest.approx(1.0), 3)
    assert found.mean == pytest.approx((0.5 * 1.0 * 0.25) ** (1 / 3))


def test_who_misses_the_target_once_is_told_apart() -> None:
    several = runs("net", 0, baseline=1000.0, ako=None, sgp=2000.0)
    several += runs("net", 1, baseline=1000.0, ako=4000.0, sgp=2000.0)
    kept = of_race(SOURCE, several, EQUAL)
    assert [each.strategy for each in kept.measured] == ["sgp"]
    assert same(kept.missed, SampleEfficiency("ako", 0.25, 0.25, 0.25, 2, 1))


@given(st.floats(1.0, 1e4), st.lists(st.integers(2, 32), min_size=1, max_size=4, unique=True))
def test_the_critical_batch_is_found_from_what_any_number_of_workers_needed(critical: float, counts: list[int]) -> None:
    several = [
        run
        for count in counts
        for run in (
            Reached(f"with {count}", 0, "baseline", count, 1000.0 * images_factor(count, 32, critical)),
            Reached(f"with {count}", 0, ALONE, 1, 1000.0),
        )
    ]
    found = critical_batch(several, EQUAL, 32)
    assert all(images_factor(n, 32, found) == pytest.approx(images_factor(n, 32, critical), rel=0.01) for n in counts)
