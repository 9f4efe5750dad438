"""Who waits for whom on a host that computes and serves."""

import numpy as np
import pytest

from backends.strategies.strategy import Strategy
from planner.predict import cluster_cycle, step_cycle
from planner.predict.clusters import Candidates
from planner.predict.costs import Costs, costs_of
from tests.planner import profiles

BOTH = Candidates(np.array([0b11]), np.array([0]))


def two(stolen_s: float) -> Costs:
    """A host that computes on its one core and a worker with a GPU; an exchange lasts 0.16 s."""
    host = profiles.device(profiles.step(0.1, accelerator="cpu", cpu_s_per_step=0.1), cores=1.0)
    found = costs_of(profiles.profile({"host": host, "worker": profiles.device(cores=1.0)}))
    assert found.pairs.up_s[1, 0] + found.pairs.down_s[1, 0] == pytest.approx(0.16)
    return profiles.with_costs(found, host_stolen_cpu_s=np.array([[0.0, stolen_s], [stolen_s, 0.0]]))


def test_transfers_over_a_slow_link_are_not_held_up_by_a_computation_but_hold_it_up() -> None:
    nothing, quarter = (cluster_cycle.solve(two(stolen_s), BOTH).cycle_s[0] for stolen_s in (0.0, 0.04))
    assert quarter[1] == pytest.approx(nothing[1])
    assert quarter[0] == pytest.approx(nothing[0] / (1 - 0.04 / quarter[1]), rel=0.02)


def test_transfers_that_keep_a_core_busy_wait_for_the_computation_too() -> None:
    nothing, all_of_it = (cluster_cycle.solve(two(stolen_s), BOTH).cycle_s[0] for stolen_s in (0.0, 0.16))
    assert all_of_it[1] > nothing[1] + 0.1
    assert all_of_it[0] > 1.3 * nothing[0]


@pytest.mark.parametrize(("cores", "due"), [(1.0, 1 / 2), (4.0, 4 / 5)])
def test_what_exceeds_the_share_that_is_due_waits(cores: float, due: float) -> None:
    for stolen_s, waits in ((0.9 * due, 0.0), (due, 0.0), (1.0, 1.0)):
        found = profiles.with_costs(two(0.16 * stolen_s), cores=np.full(2, cores))
        assert cluster_cycle._waiting(found)[1, 0] == pytest.approx(waits)
    half = profiles.with_costs(two(0.16 * 2 * due / (due + 1)), cores=np.full(2, cores))  # halfway between 1/due and 1
    assert cluster_cycle._waiting(half)[1, 0] == pytest.approx(0.5)


@pytest.mark.parametrize(("cores", "exchange_s"), [(0.5, 0.04), (1.0, 0.02), (4.0, 0.05)])
def test_beside_the_server_an_exchange_takes_what_it_costs_unless_there_are_more_cores(
    cores: float, exchange_s: float
) -> None:
    local = two(0.0)
    up_s, down_s = local.pairs.up_s.copy(), local.pairs.down_s.copy()
    for matrix in (up_s, down_s):
        np.fill_diagonal(matrix, 0.025)
    stolen_cpu_s = np.diag([0.02, 0.02])
    local = profiles.with_costs(
        local, cores=np.full(2, cores), host_stolen_cpu_s=stolen_cpu_s, up_s=up_s, down_s=down_s
    )
    uncontended_s, _, _ = cluster_cycle._stations(local)
    others_s = local.devices.ready_s[0] + local.devices.service_s[0]
    assert uncontended_s[0, 0] - others_s == pytest.approx(exchange_s)


def cycle_s(which: Candidates, strategy: str, **step: object) -> float:
    """Of the first of two devices whose steps are changed."""
    made = {name: profiles.device(profiles.step(**step)) for name in "ab"}
    costs = costs_of(profiles.profile(made), strategy=Strategy.from_text(strategy))
    return float(step_cycle.solve(costs, which).cycle_s[0, 0])
