"""Rounds of workers that wait for one another, by hand and against a simulated link."""

import numpy as np
import pytest

from backends.strategies.strategy import Strategy
from planner.plan.recommend import make_plan, recommend
from planner.predict.clusters import Candidates
from planner.predict.kinds.cycles import COMPUTE
from planner.predict.run import predict
from tests.planner import profiles
from tests.planner.predictions import inputs_of, solve
from tests.planner.requests import asked

LAYERS = (200_000, 25_000, 20_000, 5_000)
ASYNCHRONOUS = "parameter-server"
SYNCHRONOUS = ASYNCHRONOUS + ":sync=synchronous"


def both(strategy):
    found = inputs_of(profiles.fleet(0.1, 0.2), strategy=Strategy.from_text(strategy), steps=1)
    return found, Candidates(np.array([3]), np.array([0]))


def test_a_round_is_the_slowest_gradient_its_way_up_both_updates_and_the_way_down() -> None:
    found, candidates = both(SYNCHRONOUS)
    round_s = 0.2 + 0.08 + 2 * 0.002 + 0.08
    assert solve(found, candidates).cycle_s == pytest.approx(np.full((1, 2), round_s))
    assert solve(found, candidates).shares[0, COMPUTE] == pytest.approx(0.2 / round_s)


def test_batches_dealt_by_speed_make_a_round_as_long_as_all_take_together() -> None:
    found, candidates = both(SYNCHRONOUS + ",batching=dynamic,aggregation=weighted")
    together_s = 2 / (1 / 0.1 + 1 / 0.2)
    assert solve(found, candidates).cycle_s == pytest.approx(np.full((1, 2), together_s + 0.08 + 0.004 + 0.08))


@pytest.mark.parametrize("strategy", [ASYNCHRONOUS, SYNCHRONOUS])
def test_each_cluster_s_batches_are_dealt_among_its_own_members(strategy: str) -> None:
    dynamic = strategy + ("," if ":" in strategy else ":") + "batching=dynamic"
    found = inputs_of(profiles.fleet(0.1, 0.2, 2.0), strategy=Strategy.from_text(dynamic), steps=1)
    many = Candidates(np.array([7, 3, 1, 6, 3]), np.array([2, 1, 0, 1, 0]))
    together = solve(found, many)
    for i in range(5):
        alone = solve(found, Candidates(many.masks[i : i + 1], many.hosts[i : i + 1]))
        for whole, one in zip(together, alone, strict=True):
            np.testing.assert_allclose(whole[i], one[0], atol=1e-12)


def test_equal_workers_queue_at_the_server_s_link() -> None:
    names = {name: profiles.device() for name in "abcd"}
    found = inputs_of(profiles.profile(names), strategy=Strategy.from_text(SYNCHRONOUS))
    round_s = solve(found, Candidates(np.array([15]), np.array([0]))).cycle_s[0]
    up_s = found.message.up / found.devices.in_bytes_per_s[0]
    down_s = found.message.down / found.devices.out_bytes_per_s[0]
    assert (up_s, down_s) == pytest.approx((0.08, 0.08))
    assert round_s == pytest.approx([0.1 + 3 * up_s + 4 * 0.002 + 3 * down_s] * 4)


def test_dropped_layers_save_both_ways_and_plans_tell_the_strategy() -> None:
    devices = {name: profiles.device(profiles.step(layers=LAYERS)) for name in "ab"}
    found = inputs_of(profiles.profile(devices), strategy=Strategy.from_text("layer-drop"))
    sent, back = found.message.up / 1_000_000, found.message.down / 1_000_000
    assert sent < 0.6
    assert back == pytest.approx(1 - (1 - sent) ** 2, rel=0.01)  # what either of the two has changed
    request = asked({"time": 1.0}, strategy=Strategy.from_text("layer-drop"))
    ranked = recommend(profiles.profile(devices), request)
    assert make_plan(ranked, "fleet.toml").run.strategy.text == "layer-drop"
    together = Candidates(np.array([3]), np.array([0]))
    dense = inputs_of(profiles.profile(devices), strategy=Strategy.from_text("parameter-server:sync=synchronous"))
    whole = predict(dense, together, 100)
    share = predict(found, together, 100).network_bytes[0] / whole.network_bytes[0]
    assert share == pytest.approx((sent + back) / 2, rel=0.01)
