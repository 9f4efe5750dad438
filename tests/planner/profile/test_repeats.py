"""What a device took for a model, seen at two or three different times."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from planner.profile import repeats
from profilers.records import Repeat, Samples, StepProfile
from tests.planner import profiles


def steps(step_s: float, count: int = 30, cpu_s: float = 1.0) -> StepProfile:
    """A first visit of equal steps."""
    timed = profiles.step()._replace(cpu_s_per_step=cpu_s, **phases(step_s, count))
    return repeats.begun(timed)


def visit(step_s: float, count: int = 10, cpu_s: float = 1.0) -> Repeat:
    return Repeat(cpu_s_per_step=cpu_s, **phases(step_s, count))


def phases(step_s: float, count: int) -> dict[str, Samples]:
    parts = {"gradient_s": 0.7, "copy_s": 0.1, "update_s": 0.3}
    return {name: Samples("s", (share * step_s,) * count) for name, share in parts.items()}


def settled(first_s: float, second_s: float, third_s: float) -> StepProfile:
    second = visit(second_s)
    return repeats.settled(repeats.checked(steps(first_s), second), second, steps(third_s))


def typical(timed: StepProfile) -> list[float]:
    return [pytest.approx(each) for each in timed.visits]


def test_a_visit_is_known_by_the_middle_one_of_its_steps_alone() -> None:
    assert repeats.typical_s(visit(2.0)) == pytest.approx(2.0)
    slow = Samples("s", (1.0, 1.0, 40.0))
    assert repeats.typical_s(Repeat(slow, slow, slow, 0.0)) == 2.0


def test_only_a_first_visit_of_the_adaptive_protocol_is_to_be_checked() -> None:
    assert repeats.unchecked(steps(1.0))
    assert not repeats.unchecked(repeats.checked(steps(1.0), visit(1.0)))
    assert not repeats.unchecked(steps(1.0)._replace(protocol="paper"))
    assert not repeats.unchecked(steps(1.0)._replace(visits=()))  # of an older profile


def test_two_that_agree_count_as_one() -> None:
    made = repeats.checked(steps(1.0, 30, cpu_s=1.0), visit(1.08, 10, cpu_s=2.0))
    assert typical(made) == [1.0, 1.08] and repeats.agree(made) and repeats.notes(made) == []
    assert len(made.gradient_s.values) == len(made.copy_s.values) == len(made.update_s.values) == 40
    assert sum(made.gradient_s.values) == pytest.approx(0.7 * (30 + 10 * 1.08))
    assert made.cpu_s_per_step == pytest.approx((30 * 1.0 + 10 * 2.0) / 40)


@pytest.mark.parametrize("second_s", [1.2, 0.8])
def test_of_two_that_do_not_agree_the_first_stays_and_says_so(second_s: float) -> None:
    made = repeats.checked(steps(1.0), visit(second_s))
    assert not repeats.agree(made) and len(made.gradient_s.values) == 30
    assert "1.00 s, " in repeats.notes(made)[0] and "profile again" in repeats.notes(made)[0]


@pytest.mark.parametrize("first_s, second_s, third_s, kept_s, steps_kept", [
    (1.7, 1.0, 1.02, (10 * 1.0 + 30 * 1.02) / 40, 40),  # the first was disturbed
    (1.0, 1.7, 1.02, (30 * 1.0 + 30 * 1.02) / 60, 60),  # the second was
    (1.0, 1.7, 3.0, 3.0, 30),  # all differ: the last is at least the newest
])  # fmt: skip
def test_a_third_visit_counts_with_the_one_that_agrees_with_it(
    first_s: float, second_s: float, third_s: float, kept_s: float, steps_kept: int
) -> None:
    made = settled(first_s, second_s, third_s)
    assert typical(made) == [first_s, second_s, third_s]
    assert len(made.gradient_s.values) == steps_kept
    assert sum(made.gradient_s.values) / steps_kept == pytest.approx(0.7 * kept_s)
    assert repeats.agree(made) == (steps_kept > 30)


SECONDS = some.floats(1e-3, 10)


@given(SECONDS, SECONDS, SECONDS)
def test_whatever_was_seen_no_step_is_made_up(first_s: float, second_s: float, third_s: float) -> None:
    made = settled(first_s, second_s, third_s)
    seen = {0.7 * first_s, 0.7 * second_s, 0.7 * third_s}
    assert set(made.gradient_s.values) <= seen
