"""What passes before the first step: models are built, and initial weights go round; 1 MB at 100 Mbit/s takes 80 ms."""

import numpy as np
import pytest

from backends.strategies.strategy import Strategy
from planner.plan.recommend import make_plan, recommend
from planner.plan.request import RecommendRequest
from planner.predict import predict
from planner.predict.clusters import Candidates
from planner.predict.costs import costs_of
from tests.planner import profiles

LAYERS = (200_000, 25_000, 20_000, 5_000)


def begins_s(strategy: str, mask: int = 7, host: int = 2) -> np.ndarray:
    devices = {
        name: profiles.device(profiles.step(build_s=build_s, layers=LAYERS))
        for name, build_s in (("a", 1.0), ("b", 5.0), ("c", 2.0))
    }
    found = costs_of(profiles.profile(devices), strategy=Strategy.from_text(strategy))
    return predict.start_times(found, Candidates(np.array([mask]), np.array([host])))[0]


def test_a_server_has_its_weights_from_the_worker_beside_it_over_loopback() -> None:
    assert begins_s("parameter-server") == pytest.approx([2.001, 5.0, 2.001])
    assert begins_s("parameter-server", mask=6) == pytest.approx([0.0, 5.0, 2.001])
    assert begins_s("parameter-server", host=1) == pytest.approx([5.001, 5.001, 5.001])


def test_what_workers_get_first_are_all_weights() -> None:
    whole, dropped = begins_s("parameter-server"), begins_s("layer-drop")
    more_s = (dropped - whole)[:2]
    sent = 0.05 + (0.8**2 + 0.1**2 + 0.08**2 + 0.02**2) / 2  # of a dense message, by each of the three
    assert more_s == pytest.approx(0.08 * (1 - sent) ** 3, rel=0.01)  # what later answers leave out


def test_peers_have_made_the_same_weights_and_wait_for_one_another() -> None:
    assert begins_s("baseline").tolist() == [5.0, 5.0, 5.0]
    assert begins_s("baseline", mask=5).tolist() == [2.0, 0.0, 2.0]


def test_one_alone_only_builds() -> None:
    assert begins_s("layer-drop", mask=1, host=0).tolist() == [1.0, 0.0, 0.0]


def test_a_plan_tells_it_and_holds_for_other_numbers_of_steps() -> None:
    devices = {name: profiles.device(profiles.step(build_s=3.0)) for name in "ab"}
    ranked = recommend(
        profiles.profile(devices),
        RecommendRequest({"time": 1.0}, steps=1000, strategy=Strategy.from_text("baseline"), include=("a", "b")),
    )
    plan = make_plan(ranked, "fleet.toml")
    assert [worker.build_s for worker in plan.workers] == [3.0, 3.0]
    cycle_s = 0.1 + 0.08 + 0.002 + 0.002
    assert plan.prediction.time_s == pytest.approx(3.0 + 500 * cycle_s)
    assert plan.for_steps(10).prediction.time_s == pytest.approx(3.0 + 5 * cycle_s)
