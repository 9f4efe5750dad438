"""Predictions of recorded clusters, beside what was measured of them.

56 fleets were profiled, and clusters of each then trained (benchmarks/README.md).
"""

import statistics

import pytest

from benchmarks import recorded
from benchmarks.ablation import TERMS, without
from benchmarks.interval_fit import runs_of
from benchmarks.recorded.scoring import Case, Score, cases
from planner.predict.cycle import ALONE
from planner.predict.interval import RECORDED

#: Terms whose absence costs a point of the error, or 0.3 points of the regret: the rule for any.
EARN_THEIR_PLACE = (
    "contention on one kernel",
    "messages' processor time",
    "what computing lacks meanwhile",
    "orders",
    "queues at its processor",
    "shadow processor",
    "capacity of a whole link",
)


@pytest.fixture(scope="module")
def made() -> list[Case]:
    return cases(recorded.load())


@pytest.fixture(scope="module")
def scored(made: list[Case]) -> Score:
    return without(None, made)


def test_clusters_of_models_of_0_2_megabytes_or_more_are_predicted_within_7_5_percent(scored: Score) -> None:
    assert scored.large <= 0.075


def test_devices_alone_are_predicted_within_8_percent(scored: Score) -> None:
    assert scored.alone <= 0.08


def test_the_cluster_that_is_chosen_by_time_is_the_fastest_or_nearly(scored: Score) -> None:
    assert scored.regret <= 0.01
    assert scored.worst <= 0.21
    assert scored.best >= 0.93


@pytest.mark.parametrize("term", EARN_THEIR_PLACE)
def test_a_term_of_the_model_earns_its_place(made: list[Case], scored: Score, term: str) -> None:
    found = without(TERMS[term], made)
    assert found.large > scored.large + 0.01 or found.regret > scored.regret + 0.003


def test_90_percent_intervals_hold_85_to_95_percent_of_runs(made: list[Case]) -> None:
    found = runs_of(made, RECORDED._replace(kinds=dict.fromkeys(RECORDED.kinds, 0.0)))
    held = [
        each
        for kind, runs in found.items()
        for fleet in set(runs.fleets)
        for each in runs.held(fleet, 0.0 if kind == ALONE else RECORDED.kinds[kind])
    ]
    assert 0.85 <= statistics.fmean(held) <= 0.95
