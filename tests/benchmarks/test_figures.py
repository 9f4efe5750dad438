"""What runs come to together."""

import pytest

from benchmarks.racing.figures import entries, sooner, times_as_long
from benchmarks.racing.records import Finished

from .made import run


def _entry(*runs: Finished):
    (found,) = entries(runs)
    return found


def test_sooner_is_the_others_seconds_over_ones_own() -> None:
    fast, slow = _entry(run("fast", target_s=5.0)), _entry(run("slow", target_s=20.0))
    never = _entry(run("slow", target_s=None))  # takes more than the 20 s of its run
    assert [str(sooner(*pair)) for pair in ((fast, slow), (fast, never), (never, fast))] == [
        "4.00", "at least 4.00", "at most 0.25",
    ]  # fmt: skip
    assert sooner(never, never) is None
    assert sooner(fast, _entry(run("slow", seed=1))) is None


def test_seconds_are_compared_seed_by_seed_and_the_interval_is_that_of_the_logarithms() -> None:
    one = _entry(run("one", 0, target_s=4.0), run("one", 1, target_s=36.0))
    other = _entry(run("other", 0, target_s=4.0), run("other", 1, target_s=4.0), run("other", 2, target_s=1.0))
    found = times_as_long(one, other)
    assert found is not None and found.low is not None and found.high is not None
    assert found.value == pytest.approx(3.0)
    assert found.high / found.value == pytest.approx(3.0**12.706, rel=1e-3)  # t of one degree of freedom
    assert found.low * found.high == pytest.approx(9.0)
