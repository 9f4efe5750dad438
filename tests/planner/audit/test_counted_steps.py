"""Rates from the counts of a run's host: exact where steps and counts are regular."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as some

from backends.protocol.events import MemberProgress, Progress
from planner.audit.counted_steps import rate


def counts(elapsed_s: list[float], steps: list[int], name: str = "a") -> list[Progress]:
    members = (MemberProgress(made, None, 0, None, True) for made in steps)
    return [Progress(0, 100, at_s, {name: each}) for at_s, each in zip(elapsed_s, members, strict=True)]


def test_a_step_takes_what_passes_from_the_first_count_that_grew_to_the_last() -> None:
    found = rate(counts([0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0], [4, 4, 5, 5, 5, 7, 7]), "a")
    assert found is not None and found.steps_per_s == pytest.approx(2 / 1.5)
    # The first count grew up to half a second before, as did the last.
    assert found.error == pytest.approx(math.hypot(0.5, 0.5) / math.sqrt(12) / 1.5)


def test_a_short_step_was_made_no_earlier_than_one_step_before_it_was_counted() -> None:
    found = rate(counts([0.0, 0.5, 1.0, 10.5], [0, 10, 20, 210]), "a")
    assert found is not None and found.steps_per_s == pytest.approx(20.0)
    assert found.error == pytest.approx(math.hypot(0.05, 0.05) / math.sqrt(12) / 10.0)


@pytest.mark.parametrize("steps", [[], [3], [3, 3, 3], [3, 3, 4, 4]])
def test_counts_that_grow_less_than_twice_tell_nothing(steps: list[int]) -> None:
    assert rate(counts([0.5 * number for number in range(len(steps))], steps), "a") is None


def test_a_member_that_was_not_there_has_no_rate() -> None:
    assert rate(counts([0.0, 1.0, 2.0], [1, 2, 3]), "b") is None


@given(some.floats(0.05, 3.0), some.floats(0.0, 1.0))
def test_regular_steps_are_found_within_what_the_counts_can_tell(step_s: float, offset: float) -> None:
    times_s = [0.5 * number for number in range(41)]
    found = rate(counts(times_s, [int(at_s / step_s + offset) for at_s in times_s]), "a")
    assert found is not None
    assert abs(found.steps_per_s * step_s - 1) <= math.sqrt(12) * found.error + 1e-9
