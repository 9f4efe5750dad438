"""Timing ends where profiling would cost more than a hundredth of the training it plans."""

from hypothesis import given
from hypothesis import strategies as some

from planner.profile.step_timing import SHARE, TimeBudget

SECONDS = some.floats(1e-3, 10)


def test_a_device_alone_may_take_a_share_of_the_planned_steps() -> None:
    allowance = TimeBudget(100_000, devices=1, common_s=0.0)
    allowance.note("pc", "resnet", 0.1)
    assert not allowance.spent("resnet", 69.9)
    assert allowance.spent("resnet", 70.1)


def test_what_is_measured_for_all_is_taken_off() -> None:
    allowance = TimeBudget(100_000, devices=1, common_s=20.0)
    allowance.note("pc", "resnet", 0.1)
    assert not allowance.spent("resnet", 49.9)
    assert allowance.spent("resnet", 50.1)


def test_a_slow_device_beside_a_fast_one_gets_fewer_steps() -> None:
    allowance = TimeBudget(100_000, devices=2, common_s=0.0)
    allowance.note("tx1", "resnet", 0.5)
    assert not allowance.spent("resnet", 170.0)  # 340 steps of its own
    allowance.note("pc", "resnet", 0.1)
    assert allowance.spent("resnet", 170.0)
    assert not allowance.spent("resnet", 55.0)  # 110 steps of its own


def test_who_has_not_been_heard_of_counts_as_much_as_the_fastest() -> None:
    allowance = TimeBudget(100_000, devices=3, common_s=0.0)
    allowance.note("pc", "resnet", 0.1)
    allowance.note("tx1", "resnet", 0.5)
    assert not allowance.spent("resnet", 700 / (10 + 2 + 10) - 0.1)
    assert allowance.spent("resnet", 700 / (10 + 2 + 10) + 0.1)


def test_models_are_apart_and_nothing_is_spent_before_anything_is_known() -> None:
    allowance = TimeBudget(1000, devices=2, common_s=5.0)
    allowance.note("pc", "resnet", 0.001)
    assert not allowance.spent("alexnet", 1e6)


def test_the_last_word_on_a_step_counts() -> None:
    allowance = TimeBudget(1000, devices=1, common_s=0.0)
    allowance.note("pc", "resnet", 1.0)
    allowance.note("pc", "resnet", 0.1)
    assert allowance.spent("resnet", 1.0)


@given(step_s=some.lists(SECONDS, min_size=1, max_size=6), steps=some.integers(1, 10**6))
def test_it_is_a_share_of_what_the_fastest_imaginable_cluster_takes(step_s: list[float], steps: int) -> None:
    allowance = TimeBudget(steps, devices=len(step_s), common_s=0.0)
    for name, seconds in enumerate(step_s):
        allowance.note(str(name), "resnet", seconds)
    training_s = steps / sum(1 / seconds for seconds in step_s)
    assert allowance.spent("resnet", SHARE * training_s * 1.001)
    assert not allowance.spent("resnet", SHARE * training_s * 0.999)
