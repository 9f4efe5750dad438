"""Steps of peers by hand: 1 MB at 100 Mbit/s takes 80 ms, an update and an addition 2 ms each.

A peer adds its own gradient before the update.
"""

import numpy as np
import pytest

from backends.strategies.presets import PRESETS
from backends.strategies.strategy import Strategy
from planner.errors import PlanError
from planner.plan.recommend import recommend
from planner.predict import traffic
from planner.predict.clusters import Candidates, of_peers
from planner.predict.inputs import Inputs
from planner.predict.kinds.async_server import MOST_STOLEN
from planner.predict.run import predict
from profilers.records.step_costs import CodecCost
from tests.planner import profiles
from tests.planner.predictions import inputs_of, solve, with_inputs
from tests.planner.requests import asked

GROUPS = "crossover-hierarchical:topology=groups:count=2"
PEERS = [name for name, strategy in PRESETS.items() if strategy.topology != "server"]
LAYERS = (200_000, 25_000, 20_000, 5_000)
ADD_S = 0.002
UPDATE_S = 0.002 + ADD_S


def four(strategy: str, slow_s: float = 0.1, **changes: object) -> Inputs:
    devices = {name: profiles.device(profiles.step(layers=LAYERS, **changes)) for name in "abc"}
    slow = profiles.device(profiles.step(slow_s, **changes))
    return inputs_of(profiles.profile({**devices, "d": slow}), strategy=Strategy.from_text(strategy), steps=1)


def cycle_s(found: Inputs | str, slow_s: float = 0.1, mask: int = 15) -> np.ndarray:
    known = four(found, slow_s) if isinstance(found, str) else found
    return solve(known, Candidates(np.array([mask]), np.array([0]))).cycle_s[0]


@pytest.mark.parametrize(
    ("strategy", "exchange_s", "added"),
    [
        ("baseline", 3 * 0.08, 3),
        ("baseline:compressor=float16", 3 * 0.04, 3),
        ("allreduce", 6 / 4 * 0.08, 6 / 4),
        ("allreduce:compressor=float16", 6 / 4 * 0.04, 6 / 4),
        ("crossover:topology=random:segments=1", 0.08, 1),
        ("sgp", 0.08, 1),
        # Up to the leader, between the leaders, and back.
        (GROUPS + ",between=random:segments=1", 3 * 0.08, 2),
        (GROUPS + ",between=ring,aggregation=mean,compressor=float16", 3 * 0.04, 2),
        # As much as links take while a gradient is computed.
        ("dlion:batching=fixed", 0.1, 3),
    ],
)
def test_synchronous_steps_are_the_slowest_gradient_the_exchange_and_the_sums(
    strategy: str, exchange_s: float, added: float
) -> None:
    sent = exchange_s / 0.24 if strategy.startswith("dlion") else 1.0
    after_s = UPDATE_S + added * sent * ADD_S
    assert cycle_s(strategy) == pytest.approx(np.full(4, 0.1 + exchange_s + after_s), rel=0.002)
    if not strategy.startswith("dlion"):  # which sends more while it computes longer
        assert cycle_s(strategy, slow_s=0.5) == pytest.approx(np.full(4, 0.5 + exchange_s + after_s), rel=0.002)


def test_batches_dealt_by_speed_end_at_the_same_time() -> None:
    computed_s = 4 / (3 / 0.1 + 1 / 0.5)
    expected_s = computed_s + 0.24 + UPDATE_S + 3 * ADD_S
    assert cycle_s("baseline:batching=dynamic", slow_s=0.5) == pytest.approx(np.full(4, expected_s))


def test_without_waiting_everyone_sends_while_it_computes() -> None:
    free = "baseline:sync=asynchronous"
    assert cycle_s(free) == pytest.approx(np.full(4, 0.24))
    adding = 3 * ADD_S / 0.24  # of the slow one's time, for what the others send meanwhile
    assert cycle_s(free, slow_s=0.5) == pytest.approx([0.24] * 3 + [(0.5 + UPDATE_S) / (1 - adding)])
    assert cycle_s("baseline:sync=bounded", slow_s=0.5) == pytest.approx(np.full(4, 0.5 + UPDATE_S + 3 * ADD_S))


def test_a_slow_one_takes_in_what_the_fast_send_at_their_own_pace() -> None:
    found = taking_in(0.02)
    taken = 3 * (0.02 / 0.5 + ADD_S) / 0.24
    assert cycle_s(found) == pytest.approx([0.24] * 3 + [(0.5 + UPDATE_S) / (1 - taken)])
    elsewhere = with_inputs(found, cpu_s=np.zeros(4))
    assert cycle_s(elsewhere) == pytest.approx(cycle_s("baseline:sync=asynchronous", slow_s=0.5))


def test_senders_are_held_back_by_one_whose_processor_cannot_take_in_more() -> None:
    held_s = cycle_s(taking_in(0.1))[:3]
    assert held_s == pytest.approx(np.full(3, 3 * (0.1 / 0.5 + ADD_S) / MOST_STOLEN))


def taking_in(cpu_s: float) -> Inputs:
    """Four asynchronous peers, the last slow; a message steals ``cpu_s`` from half a core."""
    found = four("baseline:sync=asynchronous", slow_s=0.5, accelerator="cpu")
    apart = ~np.eye(4, dtype=bool)
    return with_inputs(found, receive_stolen_per_byte=np.where(apart, cpu_s / 1e6, 0.0), cores=np.full(4, 0.5))


def test_backup_workers_go_as_fast_as_the_slowest_computes_and_sends() -> None:
    assert cycle_s("hop", slow_s=0.5) == pytest.approx(np.full(4, 0.5 + 0.24 + UPDATE_S + 3 * ADD_S))


def test_who_asks_waits_for_the_way_there_the_sum_and_the_way_back_and_who_is_asked_for_nobody() -> None:
    found = cycle_s("ad-psgd", mask=3)
    asks_s = 0.1 + 2 * 0.08 + UPDATE_S
    assert found[0] == pytest.approx(asks_s + UPDATE_S + ADD_S)
    computes_s = 0.1 + UPDATE_S + ADD_S
    assert found[1] == pytest.approx(computes_s / (1 - (UPDATE_S + ADD_S) / found[0]))
    assert np.isinf(found[2:]).all()


def test_choosing_what_is_sent_and_adding_it_up_cost_time() -> None:
    def known(strategy: str, **changes: object) -> np.ndarray:
        return cycle_s(four(strategy, **changes))

    coding = CodecCost(profiles.seconds(0.03), profiles.seconds(0.01))
    for strategy, messages, added in (
        ("baseline:compressor=top-k", 1, 3),
        ("dlion:batching=fixed,compressor=max-n", 3, 3 * 0.1 / 0.24),  # each link has a Max N of its own
    ):
        kind = Strategy.from_text(strategy).compressor.name
        more_s = messages * 0.03 + added * (0.01 - ADD_S)
        costs = {**profiles.step().costs.compressors, kind: coding}
        assert known(strategy, compressors=costs) == pytest.approx(known(strategy) + more_s)


@pytest.mark.parametrize("name", PEERS)
def test_every_preset_is_ranked_with_what_it_sends(name: str) -> None:
    found = four(name)
    together = Candidates(np.array([15, 15]), np.array([0, 2]))
    told = predict(found, together, 1000)
    assert np.isfinite(told.time_s).all() and (told.time_s > 0).all()
    assert told.time_s[0] == told.time_s[1]
    load = traffic.of(found.strategy.topology, 4)
    sent = load.shares[0].sum(axis=1) + load.shares[0].sum(axis=0) * load.answers
    assert told.network_bytes[0] <= 1000 * sent.max() * found.message.up * 1.001
    devices = {device: profiles.device() for device in "ab"}
    ranked = recommend(profiles.profile(devices), asked({"time": 1.0}, strategy=Strategy.from_text(name)))
    assert sorted(ranked.row(place).config.workers for place in (1, 2, 3)) == [("a",), ("a", "b"), ("b",)]
    assert len(ranked) == 3  # whoever conducts


def test_every_hop_of_a_ring_has_the_latency_of_its_slowest_link() -> None:
    found = four("allreduce")
    later = with_inputs(found, latency_s=np.where(~np.eye(4, dtype=bool), 0.01, 0.0))
    assert cycle_s(later) == pytest.approx(cycle_s(found) + 6 * 0.01, rel=0.001)


def test_a_slow_link_of_one_that_is_ready_early_is_not_waited_for_from_the_last_on() -> None:
    found = inputs_of(profiles.fleet(0.1, 0.5), strategy=Strategy.from_text("baseline"))
    rate = found.pairs.bytes_per_s.copy()
    rate[0, 1] = 1e6 / 0.42  # from a, who has computed at 0.1 s
    slow = with_inputs(found, bytes_per_s=rate)
    assert cycle_s(slow, mask=3)[:2] == pytest.approx([0.5 + 0.08 + UPDATE_S + ADD_S] * 2)


def test_devices_that_do_not_reach_one_another_are_no_peers() -> None:
    reachable = np.ones((3, 3), dtype=bool)
    reachable[0, 2] = False
    kept = of_peers(Candidates(np.array([1, 3, 5, 6, 7, 7]), np.array([0, 0, 0, 1, 0, 1])), reachable)
    assert kept.masks.tolist() == [1, 3, 6]
    with pytest.raises(PlanError, match="all reach one another"):
        of_peers(Candidates(np.array([5, 7]), np.array([0, 0])), reachable)
