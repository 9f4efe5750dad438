"""How much sooner workers with local steps get to a target, from made-up curves."""

import pytest

from benchmarks.rounds_efficiency import Pair, fitted


def test_what_follows_the_law_is_fitted_exactly() -> None:
    sets = [(25, 25), (100, 100), (25,) * 4, (100,) * 4, (100, 50, 50)]
    pairs = [Pair(each, 0, 1.0) for each in sets]
    pairs = [pair._replace(sooner=pair.count ** (0.9 - 0.002 * pair.steps)) for pair in pairs]
    assert fitted(pairs) == pytest.approx((0.9, 0.002, 0.0), abs=1e-6)
