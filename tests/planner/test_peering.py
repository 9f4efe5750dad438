"""Steps of peers against what follows on paper: 1 MB at 100 Mbit/s takes 80 ms."""

import numpy as np
import pytest

from backends.strategies.presets import PRESETS
from planner import cycles, peering
from planner.clusters import Candidates, conducted
from planner.costs import Costs, costs
from planner.errors import PlanError
from planner.plan import recommend
from planner.predict import predict
from tests.planner import profiles

PEERS = [name for name, strategy in PRESETS.items() if strategy.topology != "server"]
LAYERS = (200_000, 25_000, 20_000, 5_000)
OWN_S = 0.1 + 0.002


def four(strategy: str, slow_s: float = 0.1) -> Costs:
    devices = {name: profiles.device(profiles.step(layers=LAYERS)) for name in "abc"}
    return costs(profiles.profile({**devices, "d": profiles.device(profiles.step(slow_s))}), strategy=strategy)


def cycle_s(strategy: str, slow_s: float = 0.1, mask: int = 15) -> np.ndarray:
    found = cycles.solve(four(strategy, slow_s), Candidates(np.array([mask]), np.array([0])))
    return found.cycle_s[0]


@pytest.mark.parametrize(
    ("strategy", "exchange_s"),
    [
        ("baseline", 3 * 0.08),
        ("baseline:sender=float16", 3 * 0.04),
        ("allreduce", 6 / 4 * 0.08),
        ("allreduce:sender=float16", 6 / 4 * 0.04),
        ("crossover:topology=random:segments=1", 0.08),
        ("sgp", 0.08),
        # Up to the leader, between the leaders, and back.
        ("crossover-hierarchical:topology=groups:count=2,between=random:segments=1", 3 * 0.08),
        ("crossover-hierarchical:topology=groups:count=2,between=ring,merge=mean,sender=float16", 3 * 0.04),
        # As much as links take while a gradient is computed.
        ("dlion:batching=fixed", OWN_S),
    ],
)
def test_synchronous_steps_are_the_slowest_gradient_and_the_exchange(strategy: str, exchange_s: float) -> None:
    assert cycle_s(strategy) == pytest.approx(np.full(4, OWN_S + exchange_s), rel=0.01)
    assert cycle_s(strategy, slow_s=0.5) == pytest.approx(
        np.full(4, 0.502 + (0.24 if strategy.startswith("dlion") else exchange_s)), rel=0.01
    )


def test_batches_dealt_by_speed_end_at_the_same_time() -> None:
    computed_s = 4 / (3 / 0.1 + 1 / 0.5) + 0.002
    assert cycle_s("baseline:batching=dynamic", slow_s=0.5) == pytest.approx(np.full(4, computed_s + 0.24), rel=0.01)


def test_without_waiting_everyone_sends_while_it_computes() -> None:
    free = "baseline:gate=asynchronous"
    assert cycle_s(free) == pytest.approx(np.full(4, 0.24), rel=0.01)
    assert cycle_s(free, slow_s=0.5) == pytest.approx([0.24] * 3 + [0.502], rel=0.01)
    assert cycle_s("baseline:gate=bounded", slow_s=0.5) == pytest.approx(np.full(4, 0.502), rel=0.01)


def test_who_asks_for_an_average_waits_for_it() -> None:
    found = cycle_s("ad-psgd", mask=3)
    assert found[:2] == pytest.approx([OWN_S + 0.08, OWN_S + 0.08], rel=0.01)
    assert np.isinf(found[2:]).all()


@pytest.mark.parametrize("name", PEERS)
def test_every_preset_is_ranked_with_what_it_sends(name: str) -> None:
    found = four(name)
    together = Candidates(np.array([15, 15]), np.array([0, 2]))
    told = predict(found, together, 1000)
    assert np.isfinite(told.time_s).all() and (told.time_s > 0).all()
    assert told.time_s[0] == told.time_s[1]
    sent = peering.loads(PRESETS[name].topology, 4).sent
    assert told.network_bytes[0] <= 1000 * sent.max() * found.up_bytes * 1.001
    devices = {device: profiles.device() for device in "ab"}
    ranked = recommend(profiles.profile(devices), {"time": 1.0}, strategy=name)
    assert sorted(ranked.row(place).config.workers for place in (1, 2, 3)) == [("a",), ("a", "b"), ("b",)]
    assert len(ranked) == 3  # whoever conducts


@pytest.mark.parametrize(("topology", "sent"), [("all", 3.0), ("ring", 1.5), ("random", 1.0), ("exponential", 1.0)])
def test_everyone_sends_what_the_topology_says(topology: str, sent: float) -> None:
    assert peering.loads(topology, 4).sent == pytest.approx(np.full(4, sent))


def test_one_alone_sends_nothing() -> None:
    alone = cycles.solve(four("baseline"), Candidates(np.array([1]), np.array([0])))
    assert alone.cycle_s[0, 0] == pytest.approx(0.11)
    assert alone.network_bytes.sum() == 0.0


def test_devices_that_do_not_reach_one_another_are_no_peers() -> None:
    reachable = np.ones((3, 3), dtype=bool)
    reachable[0, 2] = False
    kept = conducted(Candidates(np.array([1, 3, 5, 6, 7, 7]), np.array([0, 0, 0, 1, 0, 1])), reachable)
    assert kept.masks.tolist() == [1, 3, 6]
    with pytest.raises(PlanError, match="all reach one another"):
        conducted(Candidates(np.array([5, 7]), np.array([0, 0])), reachable)
