import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import PlanError
from planner.plan.rank import exponents, parse_weights, rank
from planner.predict.clusters import enumerate_clusters
from planner.predict.run import Predictions, predict
from tests.planner import profiles
from tests.planner.predictions import inputs_of


def predictions(*gradients_s: float) -> Predictions:
    known = inputs_of(profiles.fleet(*gradients_s))
    return predict(known, enumerate_clusters(known.names, known.pairs.reachable), 1000)


def test_weights_are_read() -> None:
    assert parse_weights("time=0.3, energy=0.7") == {"time": 0.3, "energy": 0.7}


@pytest.mark.parametrize("text", ["time", "time=x", "speed=1", "time=-1", "time=1,time=2", "", "time=inf", "time=nan"])
def test_weights_that_do_not_fit_are_named_with_the_metrics(text: str) -> None:
    with pytest.raises(PlanError, match=r"--weights .*metrics: time, power, energy, edp"):
        parse_weights(text)


def test_time_and_energy_in_equal_parts_are_edp() -> None:
    time, power = exponents({"time": 1, "energy": 1})
    assert time / power == 2
    assert exponents({"edp": 1.0}) == (2.0, 1.0)


@given(st.floats(0.01, 100), st.sampled_from(["time", "power", "energy", "edp"]))
def test_the_size_of_weights_does_not_matter(size: float, metric: str) -> None:
    assert exponents({metric: size, "time": size}) == pytest.approx(exponents({metric: 2.0, "time": 2.0})) or (
        metric == "time"
    )


@pytest.mark.parametrize("metric", ["time", "power", "energy", "edp"])
def test_the_score_of_one_metric_is_its_value_and_the_smallest_comes_first(metric: str) -> None:
    found = predictions(0.1, 0.2, 0.3)
    ranking = rank([found], {metric: 1.0})
    value = {
        "time": found.time_s,
        "power": found.power_w,
        "energy": found.power_w * found.time_s,
        "edp": found.power_w * found.time_s**2,
    }[metric]
    assert ranking.score == pytest.approx(value)
    assert (np.diff(value[ranking.order]) >= -1e-9 * value.max()).all()


def test_of_equal_scores_the_smaller_cluster_is_first() -> None:
    found = predictions(0.1, 0.2, 0.3)
    equal = found._replace(time_s=np.ones_like(found.time_s))
    sizes = found.candidates.members(3).sum(axis=1)[rank([equal], {"time": 1.0}).order]
    assert sizes.tolist() == sorted(sizes)


def test_parts_are_ranked_together_one_after_the_other() -> None:
    first, second = predictions(0.1, 0.3), predictions(0.2)
    ranking = rank([first, second], {"time": 1.0})
    assert ranking.score.size == first.time_s.size + 1
    assert ranking.score[-1] == pytest.approx(second.time_s[0])
