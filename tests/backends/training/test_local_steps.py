"""How many local steps members make, by their speeds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.protocol.frames import LocalRound
from backends.strategies.local_updates import LocalSpec, OuterSpec
from backends.training.local_steps import LocalSteps, RoundPlan

MANY = 10**9


def timed(spec: LocalSpec, **step_s: float) -> LocalSteps:
    made = LocalSteps(spec)
    for name, seconds in step_s.items():
        for _ in range(3):
            made.record(name, 10, 10 * seconds)
    return made


def of(made: LocalSteps, names: str, done: int = 0, left: int = MANY) -> list[int]:
    return list(made.plan(tuple(names), done, left).steps.values())


def test_by_time_each_makes_as_many_as_a_round_has_room_for_and_at_least_one() -> None:
    assert of(timed(LocalSpec("time", seconds=2.05), a=0.1, b=0.4, c=9.0), "abc") == [20, 5, 1]


def test_one_that_was_not_timed_makes_one_step_in_a_round_of_seconds() -> None:
    assert of(timed(LocalSpec("time", seconds=2.05), a=0.1), "ab") == [20, 1]


def test_a_predicted_step_counts_until_a_round_was_made() -> None:
    for spec, planned, measured in (
        (LocalSpec("time", seconds=2.05), [20, 5], [20, 10]),
        (LocalSpec("speed", every=50), [50, 12], [50, 25]),
    ):
        made = LocalSteps(spec, expected_s={"a": 0.1, "b": 0.4})
        assert of(made, "ab") == planned
        for name, step_s in (("a", 0.1), ("b", 0.2)):
            made.record(name, 10, 10 * step_s)
        assert of(made, "ab") == measured


def test_by_speed_the_fast_one_makes_all_and_others_in_proportion() -> None:
    assert of(timed(LocalSpec("speed", every=50), a=0.1, b=0.2, c=0.25), "abc") == [50, 25, 20]


def test_one_mistimed_round_does_not_shorten_those_of_the_others() -> None:
    made = timed(LocalSpec("speed", every=50), a=0.1, b=0.2, c=0.2, d=0.2)
    made.record("d", 10, 0.01)
    assert of(made, "abc") == [50, 25, 25]


def test_before_the_first_round_every_step_is_exchanged() -> None:
    made = LocalSteps(LocalSpec("steps", every=7, after=100), OuterSpec("nesterov"))
    assert of(made, "ab", done=99) == [1, 1]
    assert of(made, "ab", done=100) == [7, 7]
    assert made.plan("ab", 99, MANY).outer[:2] == (1.0, 0.0)
    assert made.plan("ab", 100, MANY).outer[:2] == (1.0, 0.5)


def test_normalized_changes_count_as_of_the_mean_number_of_steps() -> None:
    plan = timed(LocalSpec("speed", every=6, normalize=True), a=0.1, b=0.3).plan("ab", 0, MANY)
    assert [plan.order(steps) for steps in plan.steps.values()] == [LocalRound(6, 4 / 6), LocalRound(2, 2.0)]
    assert RoundPlan(plan.steps, plan.outer, False).order(6) == LocalRound(6, 1.0)


@given(st.integers(1, 100), st.integers(1, 6), st.integers(1, 1000))
def test_the_last_round_is_shortened(every: int, members: int, left: int) -> None:
    names = "abcdef"[:members]
    total = sum(of(LocalSteps(LocalSpec("steps", every=every)), names, left=left))
    assert total == every * members if left >= every * members else left <= total < left + members


@pytest.mark.parametrize(("steps", "seconds"), [(0, 1.0), (3, float("nan")), (3, -1.0), (3, float("inf"))])
def test_numbers_that_no_round_has_are_refused(steps: int, seconds: float) -> None:
    with pytest.raises(ValueError, match="made a round of"):
        LocalSteps(LocalSpec("speed")).record("a", steps, seconds)
