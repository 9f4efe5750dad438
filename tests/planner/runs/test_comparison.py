"""Runs side by side."""

import pytest

from backends.protocol.events import Evaluated
from planner.runs.comparison import compare
from planner.runs.summary import FINISHED, RunCosts, RunSummary

FIRST = RunSummary(
    "runs/a", "a", "2026-01-31T12:00:00", FINISHED, steps_made=100, measured=RunCosts(10.0, None, 0.0),
    evaluation=Evaluated(100, "a", 0.5, {"accuracy": 0.8}, 0.1), settings={"batch": 16, "rate": 0.1, "seed": 0},
)  # fmt: skip
SECOND = FIRST._replace(
    name="b", measured=RunCosts(12.5, 40.0, 500.0), evaluation=Evaluated(100, "a", 0.25, {"f1": 0.7}, 0.1),
    settings={"batch": 32, "rate": 0.1, "warmup": 5, "seed": 0},
)  # fmt: skip


def test_results_have_their_difference_from_the_first_run() -> None:
    results = compare([FIRST, SECOND, FIRST]).results
    assert results["time_s"].values == (10.0, 12.5, 10.0)
    assert results["time_s"].differences == pytest.approx((0.0, 0.25, 0.0))
    assert results["loss"].differences == pytest.approx((0.0, -0.5, 0.0))


def test_what_is_unknown_or_zero_in_the_first_run_gives_no_difference() -> None:
    results = compare([FIRST, SECOND]).results
    assert results["power_w"] == ((None, 40.0), (None, None))
    assert results["energy_j"] == ((0.0, 500.0), (None, None))
    assert results["f1"] == ((None, 0.7), (None, None))
