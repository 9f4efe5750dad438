"""Rounds of workers that wait for one another, by hand and against a simulated link."""

import numpy as np
import pytest

from backends.strategies.strategy import Strategy
from planner.plan.recommend import make_plan, recommend
from planner.plan.request import RecommendRequest
from planner.predict import step_cycle, sync_server
from planner.predict.clusters import Candidates
from planner.predict.costs import costs_of
from planner.predict.predict import predict
from tests.planner import profiles

TWO = {"a": profiles.device(), "b": profiles.device(profiles.step(0.2))}
LAYERS = (200_000, 25_000, 20_000, 5_000)
ASYNCHRONOUS = "parameter-server"
SYNCHRONOUS = ASYNCHRONOUS + ":sync=synchronous"


def both(strategy):
    found = costs_of(profiles.profile(TWO), strategy=Strategy.from_text(strategy))
    return found, Candidates(np.array([3]), np.array([0]))


def test_a_round_is_the_slowest_gradient_its_way_up_both_updates_and_the_way_down() -> None:
    found, candidates = both(SYNCHRONOUS)
    round_s, computed_s = sync_server.round_s(found, candidates)
    assert computed_s == pytest.approx([0.2])
    assert round_s == pytest.approx([0.2 + 0.08 + 2 * 0.002 + 0.08])
    assert step_cycle.solve(found, candidates).cycle_s == pytest.approx(np.full((1, 2), round_s[0]))


def test_each_of_equal_workers_is_the_slowest_in_some_rounds() -> None:
    """A gradient takes 0.09 or 0.11 s, each as likely."""
    steady, varied = (
        sync_server.round_s(
            costs_of(
                profiles.profile({name: profiles.device(profiles.step(spread=spread)) for name in "ab"}),
                strategy=Strategy.from_text(SYNCHRONOUS),
            ),
            Candidates(np.array([3, 1]), np.array([0, 0])),
        )
        for spread in (0.0, 0.1)
    )
    for had, has in zip(steady, varied, strict=True):
        assert has - had == pytest.approx([0.005, 0.0])


def test_batches_dealt_by_speed_make_a_round_as_long_as_all_take_together() -> None:
    found, candidates = both(SYNCHRONOUS + ",batching=dynamic,aggregation=weighted")
    together_s = 2 / (1 / 0.1 + 1 / 0.2)
    assert step_cycle.solve(found, candidates).cycle_s == pytest.approx(
        np.full((1, 2), together_s + 0.08 + 0.004 + 0.08)
    )


def test_without_waiting_batches_dealt_by_speed_slow_the_fast_and_speed_the_slow() -> None:
    fixed, dealt = (
        step_cycle.solve(*both(name)).cycle_s[0] for name in (ASYNCHRONOUS, ASYNCHRONOUS + ":batching=dynamic")
    )
    together_s = 2 / (1 / 0.1 + 1 / 0.2)
    assert dealt - fixed == pytest.approx([together_s - 0.1, together_s - 0.2], abs=0.01)


@pytest.mark.parametrize("strategy", [ASYNCHRONOUS, SYNCHRONOUS])
def test_each_cluster_s_batches_are_dealt_among_its_own_members(strategy: str) -> None:
    devices = {name: profiles.device(profiles.step(s)) for name, s in (("a", 0.1), ("b", 0.2), ("c", 2.0))}
    dynamic = strategy + ("," if ":" in strategy else ":") + "batching=dynamic"
    found = costs_of(profiles.profile(devices), strategy=Strategy.from_text(dynamic))
    many = Candidates(np.array([7, 3, 1, 6, 3]), np.array([2, 1, 0, 1, 0]))
    together = step_cycle.solve(found, many)
    for i in range(5):
        alone = step_cycle.solve(found, Candidates(many.masks[i : i + 1], many.hosts[i : i + 1]))
        for whole, one in zip(together, alone, strict=True):
            np.testing.assert_allclose(whole[i], one[0])


def test_equal_workers_queue_at_the_server_s_link() -> None:
    names = {name: profiles.device() for name in "abcd"}
    found = costs_of(profiles.profile(names), strategy=Strategy.from_text(SYNCHRONOUS))
    round_s, _ = sync_server.round_s(found, Candidates(np.array([15]), np.array([0])))
    up_s = found.up_bytes / found.devices.in_bytes_per_s[0]
    down_s = found.down_bytes / found.devices.out_bytes_per_s[0]
    assert (up_s, down_s) == pytest.approx((0.08, 0.08))
    assert round_s == pytest.approx([0.1 + 3 * up_s + 4 * 0.002 + 3 * down_s])


def test_a_bound_makes_all_as_slow_as_the_slowest() -> None:
    found, candidates = both("parameter-server:sync=bounded")
    free = step_cycle.solve(found._replace(strategy=Strategy.from_text("parameter-server")), candidates).cycle_s
    assert step_cycle.solve(found, candidates).cycle_s == pytest.approx(np.full((1, 2), free.max()))


def test_one_alone_waits_for_nobody() -> None:
    found, _ = both(SYNCHRONOUS)
    alone = Candidates(np.array([1]), np.array([0]))
    assert step_cycle.solve(found, alone).cycle_s[0, 0] == pytest.approx(0.11)


@pytest.mark.parametrize(
    ("strategy", "up", "down"),
    [("parameter-server:compressor=float16", 0.5, 1.0), ("parameter-server:compressor=top-k:share=0.01", 0.02, 1.0)],
)
def test_what_is_sent_is_what_counts(strategy: str, up: float, down: float) -> None:
    found, _ = both(strategy)
    assert found.up_bytes == pytest.approx(1_000_000 * up, rel=0.01)
    assert found.down_bytes == pytest.approx(1_000_000 * down)
    assert found.pairs.up_s[0, 1] == pytest.approx(0.08 * up, rel=0.01)


def test_dropped_layers_save_both_ways_and_plans_tell_the_strategy() -> None:
    devices = {name: profiles.device(profiles.step(layers=LAYERS)) for name in "ab"}
    found = costs_of(profiles.profile(devices), strategy=Strategy.from_text("layer-drop"))
    sent, back = found.up_bytes / 1_000_000, found.down_bytes / 1_000_000
    assert sent < 0.6
    assert back == pytest.approx(1 - (1 - sent) ** 2, rel=0.01)  # what either of the two has changed
    request = RecommendRequest({"time": 1.0}, strategy=Strategy.from_text("layer-drop"))
    ranked = recommend(profiles.profile(devices), request)
    assert make_plan(ranked, "fleet.toml").run.strategy.text == "layer-drop"
    together = Candidates(np.array([3]), np.array([0]))
    dense = costs_of(profiles.profile(devices), strategy=Strategy.from_text("parameter-server:sync=synchronous"))
    whole = predict(dense, together, 100)
    share = predict(found, together, 100).network_bytes[0] / whole.network_bytes[0]
    assert share == pytest.approx((sent + back) / 2, rel=0.01)


def test_an_exchange_within_a_device_takes_its_processor_time_where_a_quota_has_made_its_probe_longer() -> None:
    """The probe took 0.3 s one way; messages take 10 ms of a processor, half of which it has."""
    links = {"a": profiles.device(cores=0.5), "b": profiles.device(cores=0.5)}
    made = tuple(
        link._replace(latency_s=profiles.seconds(0.3)) if link.source == link.target else link
        for link in profiles.links(links)
    )
    found = costs_of(profiles.profile(links, links=made), strategy=Strategy.from_text(SYNCHRONOUS))
    stolen_s = found.pairs.host_stolen_cpu_s.copy()
    np.fill_diagonal(stolen_s, 0.01)
    found = found._replace(pairs=found.pairs._replace(host_stolen_cpu_s=stolen_s))
    round_s, _ = sync_server.round_s(found, Candidates(np.array([3]), np.array([0])))
    assert round_s == pytest.approx([0.1 + 0.08 + 2 * 0.002 + 0.08], rel=0.05)
