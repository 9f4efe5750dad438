"""Measured clusters are scored: the choice beside the best, and errors by kind of exchange."""

import pytest

from planner.audit.outcome import Outcome, errors_by_kind, verdict

TIME, ENERGY = {"time": 1.0}, {"energy": 1.0}


def outcome(place: int, measured_s: float | None, measured_w: float | None = None, kind: str = "alone") -> Outcome:
    """A cluster whose step was predicted to take 2 s at 10 W."""
    return Outcome(place, "a", ("a", "b"), kind, (), 2.0, 10.0, measured_s, measured_w)


def test_the_first_is_a_hit_where_no_other_is_better() -> None:
    found = verdict([outcome(1, 2.0), outcome(2, 2.0), outcome(3, 3.0)], TIME)
    assert found is not None and found.hit and found.regret == 0.0


def test_the_regret_is_what_the_first_is_worse_than_the_best() -> None:
    found = verdict([outcome(1, 3.0), outcome(2, 2.0)], TIME)
    assert found is not None and (found.hit, found.best, found.regret) == (False, 2, 0.5)


def test_watts_count_as_measured_or_else_as_predicted() -> None:
    found = verdict([outcome(1, 2.0), outcome(2, 3.0, 5.0)], ENERGY)
    assert found is not None and found.best == 2 and found.regret == pytest.approx(20 / 15 - 1)


@pytest.mark.parametrize("outcomes", [[outcome(1, 2.0)], [outcome(1, None), outcome(2, 2.0), outcome(3, 2.0)], []])
def test_without_the_first_and_another_nothing_is_known(outcomes: list[Outcome]) -> None:
    assert verdict(outcomes, TIME) is None


def test_errors_are_signed_and_filed_by_kind() -> None:
    found = errors_by_kind([outcome(1, 3.0), outcome(2, 1.0), outcome(3, 2.0, kind="ring"), outcome(4, None)])
    assert found == {"alone": (0.5, -0.5), "ring": (0.0,)}
