import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import PlanError
from planner.plan.rank import Scored, by_score, exponents, parse_weights, rank
from planner.predict.clusters import Candidates, enumerate_clusters
from planner.predict.costs import Costs, costs_of
from planner.predict.predict import Predictions, predict
from tests.planner import profiles


def predictions(spread: float, *gradients_s: float) -> tuple[Predictions, Costs]:
    made = {
        name: profiles.device(profiles.step(each, spread=spread))
        for name, each in zip("abcd", gradients_s, strict=False)
    }
    known = costs_of(profiles.profile(made))
    return predict(known, enumerate_clusters(known.names, known.pairs.reachable), 1000), known


def alone(found: Predictions) -> np.ndarray:
    """Candidates of one device, in the order of devices."""
    return np.flatnonzero(found.candidates.members(len(found.cycle_s[0])).sum(axis=1) == 1)


def test_weights_are_read() -> None:
    assert parse_weights("time=0.3, energy=0.7") == {"time": 0.3, "energy": 0.7}


@pytest.mark.parametrize("text", ["time", "time=x", "speed=1", "time=-1", "time=1,time=2", "", "time=inf", "time=nan"])
def test_weights_that_do_not_fit_are_named_with_the_metrics(text: str) -> None:
    with pytest.raises(PlanError, match=r"--weights .*metrics: time, power, energy, edp"):
        parse_weights(text)


def test_weights_must_not_all_be_zero() -> None:
    with pytest.raises(PlanError, match="at least one weight"):
        parse_weights("time=0,power=0")


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
    found, _ = predictions(0.0, 0.1, 0.2, 0.3)
    ranking = rank(found, {metric: 1.0})
    value = {
        "time": found.time_s,
        "power": found.power_w,
        "energy": found.power_w * found.time_s,
        "edp": found.power_w * found.time_s**2,
    }[metric]
    assert ranking.score == pytest.approx(value)
    assert (np.diff(value[ranking.order]) >= -1e-9 * value.max()).all()


def test_time_needs_no_watts() -> None:
    found, _ = predictions(0.0, 0.1, 0.2)
    unknown = found._replace(power_w=np.full_like(found.power_w, np.nan))
    assert (rank(unknown, {"time": 1.0}).order == rank(found, {"time": 1.0}).order).all()


def test_without_spread_intervals_are_points_and_only_equals_tie() -> None:
    found, _ = predictions(0.0, 1.0, 3.0)
    ranking = rank(found, {"time": 1.0})
    assert ranking.low == pytest.approx(ranking.high)
    assert ranking.tied[ranking.order[0]]
    assert ranking.tied.sum() == 1 + np.isclose(ranking.score, ranking.score.min()).sum() - 1


def test_the_interval_of_a_device_alone_is_that_of_its_mean_step() -> None:
    found, known = predictions(0.1, 0.1)
    ranking = rank(found, {"time": 1.0})
    share = 0.1 / 0.11 * known.devices.errors.gradient[0]
    assert np.log(ranking.high / ranking.score) == pytest.approx([1.96 * share], rel=1e-3)


def test_near_devices_tie_and_distant_ones_do_not() -> None:
    found, known = predictions(0.3, 0.1, 0.1005, 0.2)
    ranking = rank(found, {"power": 1.0})
    assert ranking.tied[alone(found)].all()  # 50 W each, no matter how fast
    only_alone = predict(known, found.candidates.at(alone(found)), 1000)
    assert rank(only_alone, {"time": 1.0}).tied.tolist() == [True, True, False]


def test_of_equal_scores_the_smaller_cluster_is_first_whatever_its_members_draw() -> None:
    found, _ = predictions(0.0, 0.1, 0.2, 0.3)
    equal = found._replace(time_s=np.ones_like(found.time_s), device_w=np.zeros_like(found.device_w))
    masks = found.candidates.masks[rank(equal, {"time": 1.0}).order]
    assert masks.tolist() == [0b001, 0b010, 0b100, *[0b011] * 2, *[0b101] * 2, *[0b110] * 2, *[0b111] * 3]


def test_the_spread_of_times_reaches_the_power_of_devices_that_wait() -> None:
    found, known = predictions(0.3, 0.1, 0.102, 0.2)
    ranking = rank(found, {"power": 1.0})
    assert (ranking.low[alone(found)] == ranking.high[alone(found)]).all()  # busy all the time
    several = np.setdiff1d(np.arange(len(ranking.order)), alone(found))
    assert (ranking.high[several] > ranking.low[several] * 1.01).all()
    around_c = Candidates(np.array([0b101, 0b110, 0b111]), np.array([2, 2, 2]))
    assert rank(predict(known, around_c, 1000), {"power": 1.0}).tied.tolist() == [True, True, False]


def test_what_two_clusters_owe_to_the_same_measurement_cancels() -> None:
    found, known = predictions(0.5, 0.1, 50.0)  # a with or without b: b hardly matters, a's error is common
    ranking = rank(found, {"time": 1.0})
    with_b = int(np.flatnonzero((found.candidates.masks == 3) & (found.candidates.hosts == 0))[0])
    by_itself = int(np.flatnonzero(found.candidates.masks == 1)[0])
    gap = abs(np.log(found.time_s[with_b] / found.time_s[by_itself]))
    one_alone = np.log(ranking.high[by_itself] / ranking.score[by_itself])
    assert gap < one_alone
    assert not (ranking.tied[with_b] and ranking.tied[by_itself])


@pytest.mark.parametrize(("other", "tie"), [("torch", 1), ("tensorflow", 2)])
def test_what_was_timed_in_two_frameworks_are_two_measurements_whose_errors_do_not_cancel(other: str, tie: int) -> None:
    found, _ = predictions(0.9, 1.0)
    scored = Scored.of(found, {"time": 1.0})
    timed = [("a", "torch"), ("a", other)]
    every = tuple(dict.fromkeys(timed))
    slower = scored._replace(log_score=scored.log_score + 0.01)
    both = scored.among(timed[:1], every).followed_by(slower.among(timed[1:], every))
    assert by_score(both).tied.sum() == tie
