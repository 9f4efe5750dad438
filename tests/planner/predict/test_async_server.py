import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.predict import async_server
from planner.predict.async_server import LINK_IN, LINK_OUT, LOCK, PROCESSOR
from tests.planner.simulate import deterministic, exponential, simulate, steady

VISITS = [LINK_IN, PROCESSOR, LOCK, LINK_OUT]


def demands(workers: int, **stations: float) -> np.ndarray:
    """(1, workers, 4) equal demands."""
    found = np.zeros((1, workers, 4))
    for name, demand_s in stations.items():
        found[..., {"link_in": LINK_IN, "link_out": LINK_OUT, "processor": PROCESSOR, "lock": LOCK}[name]] = demand_s
    return found


def rate(cycles_s: np.ndarray) -> float:
    return float((1 / np.asarray(cycles_s)).sum())


def test_one_worker_never_waits() -> None:
    solved = async_server.solve(demands(1, link_in=1, processor=2, lock=3, link_out=4), np.array([[5.0]]))
    assert solved.cycle_s[0, 1, 0] == pytest.approx(15.0)


def test_two_workers_at_one_shared_station_by_hand() -> None:
    # Alone a worker is at the station for 1 s of 4: Q = 1/4. R = 1 (1 + 1/4), cycle = 3 + 1.25.
    solved = async_server.solve(demands(2, link_in=1), np.array([[3.0, 3.0]]))
    assert solved.cycle_s[0, 3] == pytest.approx([4.25, 4.25])
    assert solved.queue[0, 3, LINK_IN] == pytest.approx(2 * 1.25 / 4.25)


def test_an_update_under_way_is_half_done() -> None:
    # Q = U = 1/4 where a worker alone holds the lock: R = 1 (1 + 1/4 - 1/8).
    solved = async_server.solve(demands(2, lock=1), np.array([[3.0, 3.0]]))
    assert solved.cycle_s[0, 3] == pytest.approx([4.125, 4.125])


def test_what_is_taken_at_once_makes_those_who_queue_slower_and_nobody_else() -> None:
    # The second worker's cycle is 4 s, of which it has the processor for 1 s: a quarter is taken
    # from the first.
    demand_s = np.zeros((1, 2, 4))
    demand_s[0, 0, PROCESSOR] = 3.0
    solved = async_server.solve(demand_s, np.array([[0.0, 4.0]]), np.array([[0.0, 1.0]]))
    assert solved.cycle_s[0, 3] == pytest.approx([4.0, 4.0])
    assert solved.cycle_s[0, 1, 0] == pytest.approx(3.0)


def test_something_of_a_processor_is_always_left() -> None:
    demand_s = np.zeros((1, 2, 4))
    demand_s[0, 0, PROCESSOR] = 1.0
    solved = async_server.solve(demand_s, np.array([[0.0, 1.0]]), np.array([[0.0, 5.0]]))
    assert solved.cycle_s[0, 3, 0] == pytest.approx(1 / (1 - async_server.MAX_STOLEN_SHARE))


def test_a_worker_that_cannot_reach_the_host_disturbs_nobody() -> None:
    solved = async_server.solve(demands(2, link_in=1), np.array([[3.0, np.inf]]))
    assert solved.cycle_s[0, 3, 0] == pytest.approx(4.0)


def test_a_cycle_is_split_into_demands_and_delay() -> None:
    demand_s, delay_s = async_server.split_cycle(np.array([10.0, 2.0]), np.array([[1.0, 2.0], [1.0, 3.0]]))
    assert delay_s == pytest.approx([7.0, 0.0])
    assert demand_s == pytest.approx(np.array([[1.0, 2.0], [0.5, 1.5]]))


fleets = st.lists(
    st.tuples(*[st.floats(0.0, 1.0)] * 4, st.floats(0.1, 5.0)), min_size=1, max_size=5
).map(np.array)  # fmt: skip


@given(fleets)
def test_little_s_law_holds_for_every_subset(fleet: np.ndarray) -> None:
    demand_s, delay_s = fleet[None, :, :4], fleet[None, :, 4]
    solved = async_server.solve(demand_s, delay_s)
    for subset in range(1, 1 << len(fleet)):
        rates = 1 / solved.cycle_s[0, subset]
        members = sum(subset >> i & 1 for i in range(len(fleet)))
        assert solved.queue[0, subset].sum() + rates @ delay_s[0] == pytest.approx(members)


@given(fleets)
def test_processor_sharing_stations_are_never_used_beyond_their_capacity(fleet: np.ndarray) -> None:
    fleet[:, LOCK] = 0
    solved = async_server.solve(fleet[None, :, :4], fleet[None, :, 4])
    assert ((1 / solved.cycle_s[0, -1]) @ fleet[:, :4] <= 1 + 1e-9).all()


@pytest.mark.parametrize("service", [exponential, deterministic])
def test_shared_stations_agree_with_simulation_whatever_the_distribution(service: object) -> None:
    demand_s = demands(4, link_in=0.15, processor=0.1, link_out=0.15)
    demand_s[0, 0, PROCESSOR] = 0.6  # computes on the server's processor
    delay_s = np.array([[0.0, 0.7, 1.1, 1.9]])
    predicted = async_server.solve(demand_s, delay_s).cycle_s[0, -1]
    measured = simulate(demand_s[0][:, VISITS].tolist(), delay_s[0].tolist(), service, exponential, 4000.0)
    assert predicted == pytest.approx(np.array(measured), rel=0.03)
    assert rate(predicted) == pytest.approx(rate(measured), rel=0.02)


@pytest.mark.parametrize("apart", [1.1, 1.5])
@pytest.mark.parametrize("workers", [2, 5])
def test_messages_of_one_size_and_steady_gradients_agree_with_simulation(workers: int, apart: float) -> None:
    demand_s = demands(workers, link_in=1.0, link_out=1.0)
    delay_s = 2.0 * apart ** np.arange(workers)[None]
    predicted = async_server.solve(demand_s, delay_s).cycle_s[0, -1]
    measured = simulate(demand_s[0][:, VISITS].tolist(), delay_s[0].tolist(), deterministic, steady, 8000.0)
    assert rate(predicted) == pytest.approx(rate(measured), rel=0.03)


def test_a_few_cycles_of_workers_alike_show_only_how_they_began() -> None:
    demand_s, delay_s = demands(2, link_in=1.0, link_out=1.0), np.array([[0.1, 0.2]])
    predicted = rate(async_server.solve(demand_s, delay_s).cycle_s[0, -1])
    at = demand_s[0][:, VISITS].tolist(), delay_s[0].tolist(), deterministic, steady
    few = [rate(simulate(*at, duration_s=45.0, seed=seed)) for seed in range(20)]
    assert min(few) < predicted < max(few)
    assert max(few) > 1.2 * min(few)
    assert rate(simulate(*at, duration_s=20000.0)) == pytest.approx(predicted, rel=0.03)


@pytest.mark.parametrize(("lock_s", "tolerance"), [(0.02, 0.01), (0.06, 0.02), (0.18, 0.06)])
def test_a_constant_update_agrees_with_simulation(lock_s: float, tolerance: float) -> None:
    demand_s = demands(6, link_in=0.1, lock=lock_s, link_out=0.1)
    delay_s = np.linspace(0.5, 1.5, 6)[None]
    predicted = async_server.solve(demand_s, delay_s).cycle_s[0, -1]
    measured = simulate(demand_s[0][:, VISITS].tolist(), delay_s[0].tolist(), deterministic, exponential, 3000.0)
    assert rate(predicted) == pytest.approx(rate(measured), rel=tolerance)
