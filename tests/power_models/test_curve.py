import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from power_models.curve import Curve

CURVE = Curve(np.log(0.97), 1.0, np.log(6.0), np.log(160.0))
LIMITS = np.log([100.0, 125, 150, 175, 200, 250])


def test_work_that_needs_little_draws_its_demand_and_work_that_needs_much_the_limit() -> None:
    assert np.exp(CURVE.watts(np.log(40.0), np.log(200.0))) == pytest.approx(40, rel=0.001)
    assert np.exp(CURVE.watts(np.log(900.0), np.log(200.0))) == pytest.approx(0.97 * 200, rel=0.001)


@given(st.floats(30, 500), st.floats(50, 400))
def test_watts_never_exceed_demand_nor_cap(demand_w: float, limit_w: float) -> None:
    watts = float(np.exp(CURVE.watts(np.log(demand_w), np.log(limit_w))))
    assert watts <= min(demand_w, 0.97 * limit_w) * (1 + 1e-9)


def test_the_curve_and_the_demands_are_found_again() -> None:
    true = np.log(60 * 1.25 ** np.arange(7))
    series = np.repeat(np.arange(7), 6)
    limits = np.tile(LIMITS, 7)
    watts = CURVE.watts(true[series], limits)
    found = Curve.fit(limits, watts, series)
    demands = found.demands(limits, watts, series)
    assert found.watts(demands[series], limits) == pytest.approx(watts, abs=0.01)
    assert demands == pytest.approx(true, abs=0.06)


@given(st.floats(30, 500), st.floats(50, 400))
def test_the_sensitivity_is_what_a_small_step_of_the_demand_does(demand_w: float, limit_w: float) -> None:
    demand, limit = np.array(np.log(demand_w)), np.array(np.log(limit_w))
    step = (CURVE.watts(demand + 1e-4, limit) - CURVE.watts(demand - 1e-4, limit)) / 2e-4
    assert CURVE.sensitivity(demand, limit) == pytest.approx(step, abs=1e-5)
