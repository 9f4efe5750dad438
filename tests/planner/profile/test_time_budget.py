"""A time budget ends timing where it would cost too much of the planned training."""

from hypothesis import given
from hypothesis import strategies as some

from planner.profile.time_budget import SHARE, TimeBudget

SECONDS = some.floats(1e-3, 10)


def test_a_device_alone_may_take_a_share_of_the_planned_steps() -> None:
    budget = TimeBudget(100_000, devices=1, common_s=0.0)
    budget.note("pc", "resnet", 0.1)
    assert not budget.spent("resnet", 69.9)
    assert budget.spent("resnet", 70.1)


def test_time_common_to_all_models_is_subtracted() -> None:
    budget = TimeBudget(100_000, devices=1, common_s=20.0)
    budget.note("pc", "resnet", 0.1)
    assert not budget.spent("resnet", 49.9)
    assert budget.spent("resnet", 50.1)


def test_a_slow_device_beside_a_fast_one_gets_fewer_steps() -> None:
    budget = TimeBudget(100_000, devices=2, common_s=0.0)
    budget.note("tx1", "resnet", 0.5)
    assert not budget.spent("resnet", 170.0)  # 340 steps of its own
    budget.note("pc", "resnet", 0.1)
    assert budget.spent("resnet", 170.0)
    assert not budget.spent("resnet", 55.0)  # 110 steps of its own


def test_a_device_without_an_estimate_counts_as_the_fastest() -> None:
    budget = TimeBudget(100_000, devices=3, common_s=0.0)
    budget.note("pc", "resnet", 0.1)
    budget.note("tx1", "resnet", 0.5)
    assert not budget.spent("resnet", 700 / (10 + 2 + 10) - 0.1)
    assert budget.spent("resnet", 700 / (10 + 2 + 10) + 0.1)


def test_each_model_has_its_own_budget_and_none_is_spent_before_an_estimate() -> None:
    budget = TimeBudget(1000, devices=2, common_s=5.0)
    budget.note("pc", "resnet", 0.001)
    assert not budget.spent("alexnet", 1e6)


def test_the_latest_estimate_of_a_step_counts() -> None:
    budget = TimeBudget(1000, devices=1, common_s=0.0)
    budget.note("pc", "resnet", 1.0)
    budget.note("pc", "resnet", 0.1)
    assert budget.spent("resnet", 1.0)


@given(step_s=some.lists(SECONDS, min_size=1, max_size=6), steps=some.integers(1, 10**6))
def test_the_budget_is_a_share_of_the_time_of_the_fastest_imaginable_cluster(step_s: list[float], steps: int) -> None:
    budget = TimeBudget(steps, devices=len(step_s), common_s=0.0)
    for name, seconds in enumerate(step_s):
        budget.note(str(name), "resnet", seconds)
    training_s = steps / sum(1 / seconds for seconds in step_s)
    assert budget.spent("resnet", SHARE * training_s * 1.001)
    assert not budget.spent("resnet", SHARE * training_s * 0.999)
