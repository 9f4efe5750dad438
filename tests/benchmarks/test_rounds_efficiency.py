"""How much sooner workers with local steps get to a target, from made-up curves."""

from typing import Any

import pytest

from benchmarks.rounds_efficiency import Pair, fitted, paired


def run(
    each: tuple[int, ...], steps: int | None, seed: int = 0, rate: float = 0.1, outer: str = "nesterov"
) -> dict[str, Any]:
    """A run whose accuracy is 0.9 after so many steps, and 0.8 before."""
    curve = [[50, 0.8]] + ([] if steps is None else [[steps, 0.9]])
    return {"case": {"each": list(each), "outer": outer, "rate": rate, "seed": seed}, "curve": curve}


def test_workers_are_compared_with_one_alone_of_the_same_seed() -> None:
    runs = [run((1,), 1000), run((1,), 2000, seed=1), run((25, 25), 500), run((25, 25), 800, seed=1)]
    pairs, missed = paired(runs, "nesterov", 0.9)
    assert [pair.sooner for pair in pairs] == [2.0, 2.5]
    assert missed == 0


def test_what_follows_the_law_is_fitted_exactly() -> None:
    sets = [(25, 25), (100, 100), (25,) * 4, (100,) * 4, (100, 50, 50)]
    pairs = [Pair(each, 0, 1.0) for each in sets]
    pairs = [pair._replace(sooner=pair.count ** (0.9 - 0.002 * pair.steps)) for pair in pairs]
    assert fitted(pairs) == pytest.approx((0.9, 0.002, 0.0), abs=1e-6)
