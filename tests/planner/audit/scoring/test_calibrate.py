"""The errors of predictions are found again in audits that were made up with them."""

import datetime
import math
import random

import numpy as np
import pytest

from backends.strategies.strategy import Strategy
from planner.audit.scoring.calibrate import calibrate
from planner.audit.scoring.cases import Case, cases_of
from planner.audit.scoring.coverage import coverage, intervals
from planner.audit.scoring.measured import MeasuredRun
from planner.errors import AuditError
from planner.provenance import NAMEPLATE, Provenance
from tests.planner import audits

TODAY = datetime.date(2026, 11, 26)
FLEETS = 40


def made_up(step: float, run: float, exchange: float = 0.0, seed: int = 1) -> list[Case]:
    """Audits whose runs are off by errors of their devices' steps, of all of them, of exchanges."""
    draw = random.Random(seed)
    found: list[Case] = []
    for number in range(FLEETS):
        fleet = audits.fleet(0.04 + 1e-6 * number, 0.07, 0.1, spread=0.0)

        def shake(made: MeasuredRun) -> MeasuredRun:
            of_all = draw.gauss(0.0, run)
            of_exchange = draw.gauss(0.0, exchange) if len(made.workers) > 1 else 0.0
            total = made.steps_per_s
            off = sum(draw.gauss(0.0, step) * each.steps_per_s / total for each in made.workers.values())
            return audits.faster(made, math.exp(-(of_all + off + 0.5 * of_exchange)))

        found += cases_of(audits.audit(fleet, audits.as_predicted(fleet, shake=shake), f"fleet-{number}"))
    return found


def test_runs_just_as_predicted_have_no_error() -> None:
    found = calibrate(made_up(0.0, 0.0), TODAY).calibration
    assert (found.step, found.run) == pytest.approx((0.0, 0.0), abs=1e-6)
    assert (found.fleets, found.emulated, found.date) == (FLEETS, False, "2026-11-26")


def test_an_error_of_all_steps_of_a_run_is_told_from_those_of_its_devices() -> None:
    of_runs, of_steps = calibrate(made_up(0.0, 0.05), TODAY), calibrate(made_up(0.1, 0.0), TODAY)
    assert of_runs.calibration.run == pytest.approx(0.05, rel=0.25)
    assert of_runs.calibration.step < 0.03
    assert of_steps.calibration.step == pytest.approx(0.1, rel=0.3)
    assert of_steps.calibration.run < 0.04


def test_an_error_of_exchanges_counts_for_clusters_alone() -> None:
    found = calibrate(made_up(0.01, 0.0, exchange=0.2), TODAY)
    (exchange,) = found.calibration.exchanges
    assert exchange.kind == "server, asynchronous"
    assert exchange.error > 0.1
    assert math.hypot(found.calibration.step, found.calibration.run) < 0.04
    assert exchange.runs == sum(1 for each in found.left_out if not each.alone)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_intervals_hold_nine_runs_of_ten_of_fleets_left_out(seed: int) -> None:
    cases = made_up(0.08, 0.04, seed=seed)
    found = calibrate(cases, TODAY)
    for alone in (True, False):
        held = coverage(found.left_out, alone)
        assert held is not None
        assert held.share == pytest.approx(0.9, abs=0.07)
    inside = [each.inside for each in intervals(cases, found.calibration)]
    assert sum(map(bool, inside)) / len(inside) == pytest.approx(0.9, abs=0.05)


@pytest.mark.parametrize(("kind", "expected"), [("sensor", 0.1), (NAMEPLATE, 0.0)])
def test_an_error_of_watts_is_that_of_watts_that_were_not_read_from_a_file(kind: str, expected: float) -> None:
    draw, cases = random.Random(3), []
    for case in made_up(0.0, 0.0):
        known = case.costs._replace(power_sources=(Provenance(kind, ("wall",)),) * len(case.costs.names))
        watts = np.array([sum(w * math.exp(draw.gauss(0.0, 0.1)) for w in watts_of(run)) for run in case.runs])
        cases.append(case._replace(costs=known, measured=case.measured._replace(power_w=watts)))
    assert calibrate(cases, TODAY).calibration.watts == pytest.approx(expected, rel=0.35)


def watts_of(run: MeasuredRun) -> list[float]:
    return [each.watts for each in run.workers.values() if each.watts is not None]


def test_kinds_whose_runs_tell_little_of_exchanges_share_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [case for case in made_up(0.0, 0.0, exchange=0.2) if case.audit <= "fleet-2"]
    waits = Strategy.from_text("parameter-server:sync=synchronous")
    synchronous = [case._replace(costs=case.costs._replace(strategy=waits)) for case in cases]
    monkeypatch.setattr("planner.audit.scoring.calibrate.FEWEST_EXCHANGES", 1e9)
    found = calibrate([*cases, *synchronous], TODAY).calibration.exchanges
    assert [each.kind for each in found] == ["server, asynchronous", "server, synchronous"]
    assert found[0].error == found[1].error and found[0].runs == found[1].runs > 0


def test_one_fleet_leaves_none_to_test_with() -> None:
    cases = made_up(0.1, 0.0)
    with pytest.raises(AuditError, match="2 fleets or more"):
        calibrate([case for case in cases if case.audit == "fleet-1"], TODAY)


def test_errors_are_stretched_where_large_ones_are_frequent() -> None:
    """One run of eight is off by five times as much as the others."""
    draw, cases = random.Random(5), []
    for case in made_up(0.0, 0.0):
        sizes = [0.05 if draw.random() < 0.125 else 0.01 for _ in case.runs]
        runs = tuple(
            audits.faster(run, math.exp(draw.choice((-1, 1)) * size))
            for run, size in zip(case.runs, sizes, strict=True)
        )
        time_s = np.array([run.time_s(case.steps) for run in runs])
        cases.append(case._replace(runs=runs, measured=case.measured._replace(time_s=time_s)))
    found = calibrate(cases, TODAY)
    inside = [each.inside for each in found.left_out]
    assert 0.85 <= sum(map(bool, inside)) / len(inside) <= 0.95
