"""Workers around an asynchronous server, by hand and against an event-driven simulation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.predict.kinds.async_server import (
    LINK_IN,
    LINK_OUT,
    LOCK,
    MOST_STOLEN,
    PROCESSOR,
    Stations,
    steady_state,
)
from tests.planner.simulate import deterministic, exponential, simulate, steady

VISITS = [LINK_IN, PROCESSOR, LOCK, LINK_OUT]
PLACES = {"link_in": LINK_IN, "link_out": LINK_OUT, "processor": PROCESSOR, "lock": LOCK}


def demands(workers: int, **stations: float) -> np.ndarray:
    """(1, workers, 4) equal demands."""
    found = np.zeros((1, workers, 4))
    for name, demand_s in stations.items():
        found[..., PLACES[name]] = demand_s
    return found


def solved(demand_s: np.ndarray, delay_s: list[float], stolen_s: list[float] | None = None) -> np.ndarray:
    """(workers,) cycles of one cluster."""
    stolen = np.zeros((1, len(delay_s))) if stolen_s is None else np.array([stolen_s])
    stations = Stations(demand_s, np.array([delay_s]), stolen)
    return steady_state(stations, np.ones((1, len(delay_s)), bool))[0][0]


def rate(cycles_s: np.ndarray) -> float:
    return float((1 / np.asarray(cycles_s)).sum())


def test_one_worker_never_waits() -> None:
    assert solved(demands(1, link_in=1, processor=2, lock=3, link_out=4), [5.0]) == pytest.approx([15.0])


def test_two_workers_at_one_shared_station_by_hand() -> None:
    # T = 3 + (1 + Q) and Q = (1 + Q) / T of the other: T^2 - 5 T + 3 = 0 once Q = 1 / (T - 1).
    cycle_s = solved(demands(2, link_in=1), [3.0, 3.0])
    queue = (cycle_s[0] - 3) / cycle_s[0]
    assert cycle_s == pytest.approx([4 + queue] * 2)


def test_what_messages_take_makes_those_who_queue_slower_and_nobody_else() -> None:
    # The second worker's cycle is 4 s, of which its messages have the processor for 1 s.
    demand_s = np.zeros((1, 2, 4))
    demand_s[0, 0, PROCESSOR] = 3.0
    assert solved(demand_s, [0.0, 4.0], [0.0, 1.0]) == pytest.approx([4.0, 4.0], rel=1e-5)


def test_something_of_a_processor_is_always_left() -> None:
    demand_s = np.zeros((1, 2, 4))
    demand_s[0, 0, PROCESSOR] = 1.0
    assert solved(demand_s, [0.0, 1.0], [0.0, 5.0])[0] == pytest.approx(1 / (1 - MOST_STOLEN), rel=1e-5)


fleets = st.lists(
    st.tuples(*[st.floats(0.0, 1.0)] * 4, st.floats(0.1, 5.0)), min_size=1, max_size=5
).map(np.array)  # fmt: skip


@given(fleets)
def test_no_station_is_used_beyond_its_capacity(fleet: np.ndarray) -> None:
    fleet[:, LOCK] = 0
    cycle_s = solved(fleet[None, :, :4], fleet[:, 4].tolist())
    assert ((1 / cycle_s) @ fleet[:, :4] <= 1 + 1e-3).all()


@given(fleets, st.floats(0.1, 1.0))
def test_a_smaller_demand_makes_nobody_slower(fleet: np.ndarray, part: float) -> None:
    smaller = fleet.copy()
    smaller[0, :4] *= part
    usual, less = (solved(each[None, :, :4], each[:, 4].tolist()) for each in (fleet, smaller))
    assert (less[1:] <= usual[1:] * 1.02).all()


@pytest.mark.parametrize("service", [exponential, deterministic])
def test_shared_stations_agree_with_simulation_whatever_the_distribution(service: object) -> None:
    demand_s = demands(4, link_in=0.15, processor=0.1, link_out=0.15)
    demand_s[0, 0, PROCESSOR] = 0.6  # computes on the server's processor
    delay_s = [0.0, 0.7, 1.1, 1.9]
    measured = simulate(demand_s[0][:, VISITS].tolist(), delay_s, service, exponential, 4000.0)
    assert rate(solved(demand_s, delay_s)) == pytest.approx(rate(measured), rel=0.03)


@pytest.mark.parametrize("apart", [1.1, 1.5])
@pytest.mark.parametrize("workers", [2, 5])
def test_messages_of_one_size_and_steady_gradients_agree_with_simulation(workers: int, apart: float) -> None:
    demand_s = demands(workers, link_in=1.0, link_out=1.0)
    delay_s = (2.0 * apart ** np.arange(workers)).tolist()
    measured = simulate(demand_s[0][:, VISITS].tolist(), delay_s, deterministic, steady, 8000.0)
    assert rate(solved(demand_s, delay_s)) == pytest.approx(rate(measured), rel=0.05)


@pytest.mark.parametrize(("lock_s", "tolerance"), [(0.02, 0.03), (0.06, 0.05)])
def test_a_constant_update_agrees_with_simulation(lock_s: float, tolerance: float) -> None:
    demand_s = demands(6, link_in=0.1, lock=lock_s, link_out=0.1)
    delay_s = np.linspace(0.5, 1.5, 6).tolist()
    measured = simulate(demand_s[0][:, VISITS].tolist(), delay_s, deterministic, exponential, 3000.0)
    assert rate(solved(demand_s, delay_s)) == pytest.approx(rate(measured), rel=tolerance)
