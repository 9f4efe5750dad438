import numpy as np
import pytest

from power_models.ratio import TIME_SHARE, Ratio, Runs, pairs
from power_models.table import Floats, Ints
from tests.power_models.made import limited


def runs(of: str) -> tuple[Runs, Floats, Ints]:
    """Runs of eight networks at six limits, the logarithms of a target, and their jobs."""
    table, _ = limited()
    return (
        Runs.of(table, "power_limit", "average_power", ()),
        np.log(table.numbers(of)),
        table.keys(["network"]),
    )


@pytest.mark.parametrize(("of", "share"), [("average_power", 1.0), ("time_per_epoch", TIME_SHARE)])
def test_the_law_counts_wholly_for_watts_and_in_part_for_times(of: str, share: float) -> None:
    assert Ratio.fit(*runs(of), of == "average_power").share == share


@pytest.mark.parametrize("of", ["average_power", "time_per_epoch"])
def test_the_law_and_the_trees_predict_the_ratios_of_known_jobs(of: str) -> None:
    known, logs, jobs = runs(of)
    ratio = Ratio.fit(known, logs, jobs, of == "average_power")
    first, second = pairs(jobs)
    found = ratio.predict(ratio.step(known.take(first), known.take(second)))
    assert np.abs(found - (logs[second] - logs[first])).mean() < 0.03


def test_the_watts_of_the_wanted_run_are_not_looked_at() -> None:
    known, logs, jobs = runs("time_per_epoch")
    ratio = Ratio.fit(known, logs, jobs, False)
    one, other = known.take(np.array([5])), known.take(np.array([0]))
    unknown = other._replace(watts=np.array([np.nan]))
    assert ratio.predict(ratio.step(one, unknown)) == ratio.predict(ratio.step(one, other))


def test_pairs_are_of_one_job_both_ways() -> None:
    first, second = pairs(np.array([0, 0, 1, 1, 1]))
    assert len(first) == 2 + 6
    assert (0, 1) in set(zip(first.tolist(), second.tolist(), strict=True))
    assert (2, 0) not in set(zip(first.tolist(), second.tolist(), strict=True))
    assert len(pairs(np.zeros(200, dtype=np.intp), most=100)[0]) == 100
