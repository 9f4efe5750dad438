"""Steps of peers by hand: 1 MB at 100 Mbit/s takes 80 ms, an update and an addition 2 ms each.

A peer adds its own gradient before the update.
"""

import numpy as np
import pytest

from backends.strategies.presets import PRESETS
from backends.strategies.strategy import Strategy
from planner.errors import PlanError
from planner.plan.recommend import recommend
from planner.plan.request import RecommendRequest
from planner.predict import decentralized, step_cycle, traffic
from planner.predict.batch_size import drawn
from planner.predict.clusters import Candidates, of_peers
from planner.predict.costs import Costs, costs_of
from planner.predict.predict import predict
from profilers.records.steps import CodecCost
from tests.planner import profiles

GROUPS = "crossover-hierarchical:topology=groups:count=2"
PEERS = [name for name, strategy in PRESETS.items() if strategy.topology != "server"]
LAYERS = (200_000, 25_000, 20_000, 5_000)
ADD_S = 0.002
UPDATE_S = 0.002 + ADD_S


def four(strategy: str, slow_s: float = 0.1, **changes: object) -> Costs:
    devices = {name: profiles.device(profiles.step(layers=LAYERS, **changes)) for name in "abc"}
    slow = profiles.device(profiles.step(slow_s, **changes))
    return costs_of(profiles.profile({**devices, "d": slow}), strategy=Strategy.from_text(strategy))


def cycle_s(found: Costs | str, slow_s: float = 0.1, mask: int = 15) -> np.ndarray:
    known = four(found, slow_s) if isinstance(found, str) else found
    return step_cycle.solve(known, Candidates(np.array([mask]), np.array([0]))).cycle_s[0]


@pytest.mark.parametrize(
    ("strategy", "slowest"),
    [("baseline", 1.0875), ("allreduce", 1.0875), ("hop", 1.0), ("baseline:sync=asynchronous", 1.0)],
)
def test_each_of_four_equal_members_that_wait_for_all_is_the_slowest_in_some_steps(
    strategy: str, slowest: float
) -> None:
    """A gradient takes 0.09 or 0.11 s: all four are fast in one of 16 steps."""
    steady_s, varied_s = (cycle_s(four(strategy, spread=spread))[0] for spread in (0.0, 0.1))
    assert varied_s - steady_s == pytest.approx((slowest - 1) * 0.1, abs=1e-9)


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
    after_s = UPDATE_S + added * ADD_S
    assert cycle_s(strategy) == pytest.approx(np.full(4, 0.1 + exchange_s + after_s), rel=0.002)
    # The others have sent theirs by then; a's still come with DLion, which sends no more than fits.
    slow_s = 0.24 if strategy.startswith("dlion") else exchange_s
    assert cycle_s(strategy, slow_s=0.5) == pytest.approx(np.full(4, 0.5 + slow_s + after_s), rel=0.002)


def test_a_leader_without_followers_shares_the_other_leaders_link_with_a_gradient() -> None:
    """So a step has four messages one after the other in place of three."""
    strategy, after_s = GROUPS + ",between=random:segments=1", UPDATE_S + 2 * ADD_S
    found = cycle_s(strategy, mask=0b0111)[:3]
    assert found == pytest.approx([0.1 + 4 * 0.08 + after_s] * 3, rel=0.002)


def test_what_a_leader_sent_long_before_shares_no_link() -> None:
    devices = {name: profiles.device(profiles.step(seconds)) for name, seconds in (("a", 0.1), ("b", 0.1), ("c", 0.5))}
    strategy = Strategy.from_text(GROUPS + ",between=random:segments=1")
    found = costs_of(profiles.profile(devices), strategy=strategy)
    assert cycle_s(found, mask=0b0111) == pytest.approx([0.5 + 3 * 0.08 + UPDATE_S + 2 * ADD_S] * 3, rel=0.02)


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
    elsewhere = profiles.with_costs(found, step_cpu_s=np.zeros(4))
    assert cycle_s(elsewhere) == pytest.approx(cycle_s("baseline:sync=asynchronous", slow_s=0.5))


def test_senders_are_held_back_by_one_whose_processor_cannot_take_in_more() -> None:
    held_s = cycle_s(taking_in(0.1))[:3]
    assert held_s == pytest.approx(np.full(3, 3 * (0.1 / 0.5 + ADD_S) / decentralized.MAX_STOLEN_SHARE))


def test_messages_that_fit_grow_with_the_gradients_that_they_hold_up() -> None:
    found = four("ako", accelerator="cpu")
    apart = ~np.eye(4, dtype=bool)
    stolen_cpu_s = np.where(apart, 0.01, 0.0)
    found = profiles.with_costs(found, receive_stolen_cpu_s=stolen_cpu_s, cores=np.full(4, 0.5), add_s=np.zeros(4))
    own_s = 0.1 + UPDATE_S
    # Three links share 100 Mbit/s and carry messages of 0.08 s as long as gradients are computed,
    # however long that is.
    taken = 0.1 / 0.08 * (0.01 / 0.5) / own_s
    assert cycle_s(found) == pytest.approx(np.full(4, own_s / (1 - taken)), rel=0.002)


def taking_in(cpu_s: float) -> Costs:
    """Four asynchronous peers, the last slow; a message steals ``cpu_s`` from half a core."""
    found = four("baseline:sync=asynchronous", slow_s=0.5, accelerator="cpu")
    apart = ~np.eye(4, dtype=bool)
    return profiles.with_costs(found, receive_stolen_cpu_s=np.where(apart, cpu_s, 0.0), cores=np.full(4, 0.5))


def test_backup_workers_go_as_fast_as_the_slowest_computes_and_sends() -> None:
    assert cycle_s("hop", slow_s=0.5) == pytest.approx(np.full(4, 0.5 + 0.24 + UPDATE_S + 3 * ADD_S))


def test_who_asks_waits_for_the_way_there_the_sum_and_the_way_back_and_who_is_asked_for_nobody() -> None:
    found = cycle_s("ad-psgd", mask=3)
    asks_s = 0.1 + 2 * 0.08 + UPDATE_S
    assert found[0] == pytest.approx(asks_s + UPDATE_S + ADD_S)
    computes_s = 0.1 + UPDATE_S + ADD_S
    assert found[1] == pytest.approx(computes_s / (1 - (UPDATE_S + ADD_S) / found[0]))
    assert np.isinf(found[2:]).all()


def test_what_comes_early_holds_a_computation_up_on_its_own_processor_only() -> None:
    found = four("baseline", slow_s=0.5, accelerator="cpu")
    apart = ~np.eye(4, dtype=bool)
    found = profiles.with_costs(found, receive_stolen_cpu_s=np.where(apart, 0.02, 0.0), cores=np.full(4, 0.5))
    without = cycle_s("baseline", slow_s=0.5)
    assert cycle_s(found) == pytest.approx(without + 3 * 0.02 / 0.5)
    elsewhere = profiles.with_costs(found, step_cpu_s=np.zeros(4))
    assert cycle_s(elsewhere) == pytest.approx(without)


def test_a_slow_link_of_one_that_is_ready_early_is_not_waited_for_from_the_last_on() -> None:
    devices = {"a": profiles.device(profiles.step(0.1)), "b": profiles.device(profiles.step(0.5))}
    found = costs_of(profiles.profile(devices), strategy=Strategy.from_text("baseline"))
    up_s = found.pairs.up_s.copy()
    up_s[0, 1] = 0.42  # from a, who has computed at 0.1 s
    assert cycle_s(profiles.with_costs(found, up_s=up_s), mask=3)[:2] == pytest.approx(
        [0.5 + 0.08 + UPDATE_S + ADD_S] * 2
    )


def test_every_round_of_a_ring_has_the_latency_and_so_has_the_word_to_the_conductor_and_back() -> None:
    apart = ~np.eye(4, dtype=bool)
    for strategy, more in (("allreduce", 6 - 6 / 4), ("baseline", 0)):  # beside those in the time of 6 / 4 messages
        found = four(strategy)
        later = profiles.with_costs(found, latency_s=np.where(apart, 0.01, 0.0))
        assert cycle_s(later) == pytest.approx(cycle_s(found) + more * 0.01 + 2 * 0.01)


def test_members_that_wait_for_nobody_do_not_wait_for_an_order() -> None:
    apart = ~np.eye(4, dtype=bool)
    found = four("ako")
    later = profiles.with_costs(found, latency_s=np.where(apart, 0.01, 0.0))
    assert cycle_s(later) == pytest.approx(cycle_s(found))


def test_orders_cost_members_that_wait_for_nobody_time_and_their_coordinators_device_that_of_all() -> None:
    found = profiles.with_costs(four("ako", accelerator="cpu"), cores=np.full(4, 0.5), add_s=np.zeros(4))
    ordered = profiles.with_costs(found, order_cpu_s=0.004 * np.eye(4))
    own_s, order_s = 0.1 + UPDATE_S + 0.008, 0.008
    assert cycle_s(ordered) == pytest.approx([own_s / (1 - 4 * order_s / own_s), *[own_s] * 3])
    on_gpus = profiles.with_costs(ordered, step_cpu_s=np.zeros(4))
    assert cycle_s(on_gpus) == pytest.approx([own_s] * 4)
    waiting = profiles.with_costs(four("baseline"), order_cpu_s=0.004 * np.eye(4))
    assert cycle_s(waiting) == pytest.approx(cycle_s("baseline"))


@pytest.mark.parametrize(
    ("strategy", "hops"), [("baseline", 0), ("allreduce", 6), ("allreduce:topology=groups:count=2,between=ring", 2)]
)
def test_each_hop_around_a_ring_costs_its_slowest_member_a_message_in_and_one_out(strategy: str, hops: int) -> None:
    found = four(strategy)
    for order_s in ([0.004] * 4, [0.004, 0.0, 0.004, 0.0]):
        hopping = profiles.with_costs(found, order_cpu_s=np.diag(order_s))
        assert cycle_s(hopping) == pytest.approx(cycle_s(found) + hops * 0.004)
    slow = profiles.with_costs(found, order_cpu_s=0.004 * np.eye(4), cores=np.array([1.0, 1.0, 1.0, 0.5]))
    in_ring = strategy == "allreduce"
    assert cycle_s(slow) == pytest.approx(cycle_s(found) + hops * (0.008 if in_ring else 0.004), rel=0.01)


def test_choosing_what_is_sent_and_adding_it_up_cost_time() -> None:
    def known(strategy: str, **changes: object) -> np.ndarray:
        return cycle_s(four(strategy, **changes))

    coding = CodecCost(profiles.seconds(0.03), profiles.seconds(0.01))
    for strategy, messages in (("baseline:compressor=top-k", 1), ("dlion:batching=fixed,compressor=max-n", 3)):
        kind = Strategy.from_text(strategy).compressor.name
        more_s = messages * 0.03 + 3 * (0.01 - ADD_S)  # each link has a Max N of its own
        costs = {**profiles.step().compressors, kind: coding}
        assert known(strategy, compressors=costs) == pytest.approx(known(strategy) + more_s)


def test_streams_bring_each_member_a_batch_of_its_own() -> None:
    most = drawn(four("scadles").names, 0).max()
    gradient_s = 0.1 + (most - 32) * 0.04 / 16
    assert cycle_s("scadles:compressor=dense")[0] == pytest.approx(gradient_s + 0.24 + UPDATE_S + 3 * ADD_S)


@pytest.mark.parametrize("name", PEERS)
def test_every_preset_is_ranked_with_what_it_sends(name: str) -> None:
    found = four(name)
    together = Candidates(np.array([15, 15]), np.array([0, 2]))
    told = predict(found, together, 1000)
    assert np.isfinite(told.time_s).all() and (told.time_s > 0).all()
    assert told.time_s[0] == told.time_s[1]
    load = traffic.of(found.strategy.topology, 4)
    sent = load.shares.sum(axis=1) + load.shares.sum(axis=0) * load.answers
    assert told.network_bytes[0] <= 1000 * sent.max() * found.up_bytes * 1.001
    devices = {device: profiles.device() for device in "ab"}
    ranked = recommend(profiles.profile(devices), RecommendRequest({"time": 1.0}, strategy=Strategy.from_text(name)))
    assert sorted(ranked.row(place).config.workers for place in (1, 2, 3)) == [("a",), ("a", "b"), ("b",)]
    assert len(ranked) == 3  # whoever conducts


def test_one_alone_sends_nothing() -> None:
    alone = step_cycle.solve(four("baseline"), Candidates(np.array([1]), np.array([0])))
    assert alone.cycle_s[0, 0] == pytest.approx(0.11)
    assert alone.network_bytes.sum() == 0.0


def test_devices_that_do_not_reach_one_another_are_no_peers() -> None:
    reachable = np.ones((3, 3), dtype=bool)
    reachable[0, 2] = False
    kept = of_peers(Candidates(np.array([1, 3, 5, 6, 7, 7]), np.array([0, 0, 0, 1, 0, 1])), reachable)
    assert kept.masks.tolist() == [1, 3, 6]
    with pytest.raises(PlanError, match="all reach one another"):
        of_peers(Candidates(np.array([5, 7]), np.array([0, 0])), reachable)
