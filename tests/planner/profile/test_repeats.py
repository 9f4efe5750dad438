"""A model timed two or three times. Exact cases and a property."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from planner.profile import repeats
from profilers.records.readings import Samples
from profilers.records.steps import Crowded, Repeat, StepProfile
from tests.planner import profiles


def steps(step_s: float, count: int = 30, cpu_s: float = 1.0) -> StepProfile:
    """A first timing of equal steps."""
    timed = profiles.step()._replace(cpu_s_per_step=cpu_s, **phases(step_s, count))
    return repeats.begun(timed)


def repeat(step_s: float, count: int = 10, cpu_s: float = 1.0) -> Repeat:
    return Repeat(cpu_s_per_step=cpu_s, **phases(step_s, count))


def phases(step_s: float, count: int) -> dict[str, Samples]:
    parts = {"gradient_s": 0.7, "copy_s": 0.1, "update_s": 0.3}
    return {name: Samples("s", (share * step_s,) * count) for name, share in parts.items()}


def settled(first_s: float, second_s: float, third_s: float) -> StepProfile:
    second = repeat(second_s)
    return repeats.settled(repeats.checked(steps(first_s), second), second, steps(third_s))


def typical(timed: StepProfile) -> list[float]:
    return [pytest.approx(each) for each in timed.repeats]


def test_a_repeat_is_judged_by_its_mean_step_which_a_quota_holds_up_now_and_then() -> None:
    assert repeats.step_s(repeat(2.0)) == pytest.approx(2.0)
    slow = Samples("s", (1.0, 1.0, 40.0))
    assert repeats.step_s(Repeat(slow, slow, slow, 0.0)) == pytest.approx(28.0)


def test_only_a_first_timing_by_the_adaptive_protocol_is_repeated() -> None:
    assert repeats.unchecked(steps(1.0))
    assert not repeats.unchecked(repeats.checked(steps(1.0), repeat(1.0)))
    assert not repeats.unchecked(steps(1.0)._replace(protocol="paper"))
    assert not repeats.unchecked(steps(1.0)._replace(repeats=()))  # of an older profile


def test_two_repeats_that_agree_are_pooled() -> None:
    made = repeats.checked(steps(1.0, 30, cpu_s=1.0), repeat(1.08, 10, cpu_s=2.0))
    assert typical(made) == [1.0, 1.08] and repeats.agree(made) and repeats.notes(made) == []
    assert len(made.gradient_s.values) == len(made.copy_s.values) == len(made.update_s.values) == 40
    assert sum(made.gradient_s.values) == pytest.approx(0.7 * (30 + 10 * 1.08))
    assert made.cpu_s_per_step == pytest.approx((30 * 1.0 + 10 * 2.0) / 40)


@pytest.mark.parametrize("second_s", [1.2, 0.8])
def test_of_two_repeats_that_do_not_agree_the_first_counts_with_a_warning(second_s: float) -> None:
    made = repeats.checked(steps(1.0), repeat(second_s))
    assert not repeats.agree(made) and len(made.gradient_s.values) == 30
    assert "1.00 s, " in repeats.notes(made)[0] and "profile again" in repeats.notes(made)[0]


@pytest.mark.parametrize("first_s, second_s, third_s, mean_s, step_count", [
    (1.7, 1.0, 1.02, (10 * 1.0 + 30 * 1.02) / 40, 40),  # the first was disturbed
    (1.0, 1.7, 1.02, (30 * 1.0 + 30 * 1.02) / 60, 60),  # the second was
    (1.0, 1.7, 3.0, 3.0, 30),  # all differ: the last is at least the newest
])  # fmt: skip
def test_a_third_repeat_is_pooled_with_the_one_that_agrees_with_it(
    first_s: float, second_s: float, third_s: float, mean_s: float, step_count: int
) -> None:
    made = settled(first_s, second_s, third_s)
    assert typical(made) == [first_s, second_s, third_s]
    assert len(made.gradient_s.values) == step_count
    assert sum(made.gradient_s.values) / step_count == pytest.approx(0.7 * mean_s)
    assert repeats.agree(made) == (step_count > 30)


def test_steps_beside_the_same_devices_are_pooled_and_beside_others_measured_anew() -> None:
    once = repeats.crowded(steps(1.0), ("a", "b"), [repeat(1.2, 10)])
    twice = repeats.crowded(once, ("b", "a"), [repeat(1.4, 30)])
    assert twice.crowded is not None and twice.crowded.repeats == 2
    assert sum(twice.crowded.steps.gradient_s.values) == pytest.approx(0.7 * (10 * 1.2 + 30 * 1.4))
    assert repeats.crowded(twice, ("a", "c"), [repeat(1.4)]).crowded == Crowded(("a", "c"), repeat(1.4))
    assert repeats.settled(repeats.checked(twice, repeat(2.0)), repeat(2.0), steps(3.0)).crowded == twice.crowded


def test_beside_others_a_device_is_timed_as_often_as_is_asked() -> None:
    once = repeats.crowded(steps(1.0), ("a", "b"), [repeat(1.2)])
    lacks = [repeats.lacks_crowd(once, frozenset(names), times) for names, times in (("a", 1), ("a", 2), ("abc", 1))]
    assert lacks == [False, True, True] and repeats.lacks_crowd(steps(1.0), frozenset("a"), 1)


@pytest.mark.parametrize("first_s, second_s, agrees", [(1.0, 1.09, True), (1.0, 1.3, False), (1.3, 1.0, False)])
def test_a_repeat_beside_others_agrees_within_a_tenth_with_the_one_before(
    first_s: float, second_s: float, agrees: bool
) -> None:
    once = repeats.crowded(steps(1.0), ("a", "b"), [repeat(first_s)])
    assert repeats.crowd_agrees(once, ("b", "a"), repeat(second_s)) == agrees
    assert repeats.crowd_agrees(once, ("a", "c"), repeat(second_s))
    assert repeats.crowd_agrees(steps(1.0), ("a", "b"), repeat(second_s))


def test_of_three_repeats_beside_others_the_two_that_differ_least_count() -> None:
    once = repeats.crowded(steps(1.0), ("a", "b"), [repeat(1.7, 10)])
    thrice = repeats.crowded(once, ("a", "b"), [repeat(1.2, 20), repeat(1.3, 30)]).crowded
    assert thrice is not None and thrice.repeats == 3
    assert sum(thrice.steps.gradient_s.values) == pytest.approx(0.7 * (20 * 1.2 + 30 * 1.3))


SECONDS = some.floats(1e-3, 10)


@given(SECONDS, SECONDS, SECONDS)
def test_every_pooled_step_was_measured(first_s: float, second_s: float, third_s: float) -> None:
    made = settled(first_s, second_s, third_s)
    seen = {0.7 * first_s, 0.7 * second_s, 0.7 * third_s}
    assert set(made.gradient_s.values) <= seen
