"""Predictions of recorded clusters, beside what was measured of them.

56 fleets were profiled, and clusters of each then trained (benchmarks/README.md).
"""

import pytest

from benchmarks import recorded
from benchmarks.recorded.scoring import Score, cases, predicted_s, score


@pytest.fixture(scope="module")
def scored() -> Score:
    made = cases(recorded.load())
    return score(made, [predicted_s(case) for case in made])


def test_clusters_of_a_network_that_people_train_are_predicted_within_7_5_percent(scored: Score) -> None:
    assert scored.large <= 0.075


def test_devices_alone_are_predicted_within_8_percent(scored: Score) -> None:
    assert scored.alone <= 0.08


def test_the_cluster_that_is_chosen_by_time_is_the_fastest_or_nearly(scored: Score) -> None:
    assert scored.regret <= 0.01
    assert scored.worst <= 0.21
    assert scored.best >= 0.93
