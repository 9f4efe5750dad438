"""Which timing of a device a plan rests on."""

import pytest

from planner.errors import PlanError
from planner.predict.gradient_times import gradient_times
from planner.predict.timings import pick_framework, timed_steps
from planner.profile.file import Profile
from profilers.records.steps import StepProfile
from tests.planner import profiles

TORCH, TENSORFLOW = profiles.step(0.2), profiles.step(0.1, framework="tensorflow")


def held(**steps: tuple[StepProfile, ...]) -> Profile:
    return profiles.profile({name: profiles.device()._replace(steps=timed) for name, timed in steps.items()})


def used(
    profile: Profile, framework: str | None = None, batch: int | None = None, model: str = "net"
) -> dict[str, str]:
    return {name: step.framework for name, step in timed_steps(profile, model, framework, batch)[0].items()}


def test_each_device_has_the_framework_that_is_fastest_on_it() -> None:
    slow = profiles.changed(TENSORFLOW, gradient_s=profiles.seconds(0.3))
    assert used(held(a=(TORCH, TENSORFLOW), b=(TORCH, slow), c=(TENSORFLOW,))) == {
        "a": "tensorflow", "b": "torch", "c": "tensorflow"
    }  # fmt: skip


def test_a_framework_that_is_asked_for_leaves_out_who_was_not_timed_with_it() -> None:
    steps, left_out = timed_steps(held(a=(TORCH, TENSORFLOW), b=(TORCH,)), "net", "tensorflow", None)
    assert list(steps) == ["a"]
    assert left_out == {"b": "net was not timed completely on it with tensorflow"}


def test_one_that_was_cut_short_is_not_the_fastest() -> None:
    cut = profiles.changed(TENSORFLOW, service_s=profiles.seconds(0.0, count=0))
    assert used(held(a=(TORCH, cut))) == {"a": "torch"}


def test_the_batch_size_that_was_timed_counts_before_the_speed_of_another() -> None:
    both = held(a=(TORCH, profiles.changed(TENSORFLOW, batch=64)))
    assert used(both, batch=32) == {"a": "torch"}
    assert used(both, batch=64) == {"a": "tensorflow"}
    with pytest.raises(PlanError, match="several batch sizes"):
        used(both)


def test_a_batch_in_parts_lies_on_no_line_with_whole_ones() -> None:
    whole = profiles.changed(TORCH, half_batch_s=profiles.seconds(0.1))
    in_parts = profiles.changed(whole, batch=64, micro_batch=8, gradient_s=profiles.seconds(0.9))
    held_both = profiles.device()._replace(steps=(whole, in_parts))
    assert gradient_times(held_both, whole).at(48) == gradient_times(profiles.device(whole), whole).at(48)


def test_why_one_framework_failed_does_not_take_the_other_from_a_device() -> None:
    device = profiles.device()._replace(failures={"net": "tensorflow is not installed for this Python"})
    failing = profiles.profile({"a": device, "b": profiles.device(TENSORFLOW)})
    assert used(failing) == {"a": "torch", "b": "tensorflow"}
    left_out = timed_steps(failing, "net", "tensorflow", None)[1]
    assert left_out == {"a": "net: tensorflow is not installed for this Python"}


def test_a_description_is_one_model_in_all_frameworks_and_a_users_file_is_not() -> None:
    own = [each._replace(model="net.py:net") for each in (TORCH, TORCH, TENSORFLOW)]
    a, b, c = ((each,) for each in own)
    steps, left_out = timed_steps(held(a=a, b=b, c=c), "net.py:net", None, None)
    assert list(steps) == ["a", "b"]
    assert left_out == {"c": "its net.py:net (abc, tensorflow) is not the one most devices timed"}


def test_a_framework_need_not_be_chosen() -> None:
    assert pick_framework(held(a=(TORCH,)), None) == "torch"
    assert pick_framework(held(a=(TORCH, TENSORFLOW)), None) is None
    assert pick_framework(held(a=(TORCH, TENSORFLOW)), "tensorflow") == "tensorflow"
    with pytest.raises(PlanError, match="framework: jax is not in the profile; profiled: tensorflow, torch"):
        pick_framework(held(a=(TORCH, TENSORFLOW)), "jax")


def test_timings_in_several_precisions_are_not_planned_together() -> None:
    mixed = profiles.changed(TORCH, precision="bf16")
    with pytest.raises(PlanError, match="^net was timed in bf16 on b and c, in fp32 on a; profile all devices with"):
        used(held(a=(TORCH,), b=(mixed,), c=(mixed,)))
    assert used(held(a=(mixed,), b=(mixed,))) == {"a": "torch", "b": "torch"}
