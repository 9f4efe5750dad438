"""Runs are counted by whether their time lies in the 90 % interval of its prediction."""

import math

import pytest

from planner.audit.scoring.cases import cases_of
from planner.audit.scoring.coverage import Z90, Interval, coverage, intervals
from planner.audit.scoring.selections import Hits
from planner.plan.recommend import recommend
from planner.plan.request import RecommendRequest
from tests.planner import audits, profiles

#: One device, whose gradients of 0.09 s vary by a tenth: with its update a step takes 0.1 s.
FLEET = profiles.profile({"a": profiles.device(profiles.step(0.09, spread=0.1))})
#: The same without variation.
ALIKE = profiles.profile({"a": profiles.device(profiles.step(0.09, spread=0.0))})


def spread() -> float:
    """Relative standard error of the time of a run on the device."""
    errors = recommend(FLEET, RecommendRequest({"time": 1.0})).predictions.time_errors
    return math.sqrt(float(errors.variance()[0]))


@pytest.mark.parametrize(("of_the_half", "inside"), [(-0.99, True), (0.99, True), (-1.01, False), (1.01, False)])
def test_a_run_is_inside_up_to_its_bounds_on_both_sides(of_the_half: float, inside: bool) -> None:
    assert spread() > 0
    step_s = 0.1 * math.exp(of_the_half * Z90 * spread())
    (found,) = intervals(cases_of(audits.audit(FLEET, [audits.run({"a": 1 / step_s})])), None)
    assert (found.alone, found.inside) == (True, inside)


def test_without_a_spread_nothing_is_told() -> None:
    (found,) = intervals(cases_of(audits.audit(ALIKE, [audits.run({"a": 10.0})])), None)
    assert found.inside is None
    assert coverage([found], alone=True) is None


def test_runs_are_counted_by_size_model_audit_and_exchange() -> None:
    found = [
        Interval("lab", "resnet", "server, asynchronous", True, True),
        Interval("lab", "cipher", "server, asynchronous", True, False),
        Interval("lab", "resnet", "server, asynchronous", False, False),
        Interval("lab", "resnet", "ring, rounds", False, True),
        Interval("other", "resnet", "server, asynchronous", True, None),
    ]  # fmt: skip
    assert coverage(found, alone=True) == Hits(1, 2)
    assert coverage(found, alone=True, model="resnet") == Hits(1, 1)
    assert coverage(found, alone=False, audit="lab") == Hits(1, 2)
    assert coverage(found, alone=False, exchange="ring, rounds") == Hits(1, 1)
    assert coverage(found, alone=True, audit="other") is None
