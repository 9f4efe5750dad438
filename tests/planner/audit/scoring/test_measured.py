import math

import pytest

from planner.audit.scoring.measured import Extrapolation, SteadyWorker
from tests.planner import audits


def test_time_follows_from_measured_rates_and_build_times() -> None:
    run = audits.run({"a": 4.0, "b": 1.0})
    assert run.time_s(100) == pytest.approx(20.0)
    workers = {"a": SteadyWorker(4.0, 5.0, 50.0, audits.SOURCE), "b": SteadyWorker(1.0, 10.0, 50.0, audits.SOURCE)}
    building = run._replace(workers=workers)
    assert building.time_s(100) == pytest.approx((100 + 20 + 10) / 5)


def test_a_worker_that_builds_for_longer_than_the_run_does_nothing_in_it() -> None:
    run = audits.run({"a": 4.0, "b": 1.0})
    late = run._replace(workers={**run.workers, "b": SteadyWorker(1.0, 1000.0, 50.0, audits.SOURCE)})
    assert late.time_s(100) == pytest.approx(25.0)


def test_power_is_that_of_all_members() -> None:
    run = audits.run({"a": 4.0, "b": 1.0}, watts=30.0)
    assert run.power_w == pytest.approx(60.0)
    assert run.at(100).energy_j == pytest.approx(60.0 * 20)
    assert run.at(100).edp_js == pytest.approx(60.0 * 400)


def test_power_is_unknown_where_a_member_tells_none() -> None:
    run = audits.run({"a": 4.0}, watts=None)
    assert run.power_w is run.at(100).edp_js is None


def test_an_emulated_member_makes_the_run_emulated() -> None:
    run = audits.run({"a": 4.0, "b": 1.0})
    assert not run.emulated
    emulated = SteadyWorker(1.0, 0.0, 5.0, audits.SOURCE._replace(emulated=True))
    assert run._replace(workers={**run.workers, "b": emulated}).emulated


def test_a_worker_that_made_no_step_has_no_cycle() -> None:
    assert SteadyWorker(0.0, 0.0, None, audits.SOURCE).cycle_s == math.inf


def test_an_extrapolation_is_judged_by_what_the_run_took() -> None:
    assert Extrapolation("net", "a", ("a",), 110.0, 100.0).error == pytest.approx(0.1)
