"""A global batch is divided as brute force would, and in whole numbers."""

import itertools
import math
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as some

from backends.strategies.strategy import Strategy
from planner.predict.contention import of_steps
from planner.predict.global_batch import divide, shares_of_devices, too_small
from planner.predict.memory import StepHeadroom
from planner.profile.file import Profile
from profilers.records.steps import BatchMemory, BatchTiming, Contention, StepMemory, StepProfile
from tests.planner import profiles
from tests.planner.profiles import changed, seconds

RING = Strategy.from_text("allreduce")
MB = 10**6


def brute_force(times: np.ndarray, least: list[int], most: list[int], size: int) -> float:
    """The least time of the slowest, over all divisions."""
    ranges = [range(low, high + 1) for low, high in zip(least, most, strict=True)]
    return min(
        max(times[i, batch] for i, batch in enumerate(each)) for each in itertools.product(*ranges) if sum(each) == size
    )


@some.composite
def problems(draw: some.DrawFn) -> tuple[np.ndarray, list[int], list[int], int]:
    """Up to four devices of up to ten samples; steps of curves may be flat."""
    count = draw(some.integers(1, 4))
    least = draw(some.lists(some.integers(1, 4), min_size=count, max_size=count))
    most = [low + draw(some.integers(0, 6)) for low in least]
    rises = draw(some.lists(some.lists(some.integers(0, 3), min_size=11, max_size=11), min_size=count, max_size=count))
    times = np.cumsum(np.array(rises, float), axis=1)
    return times, least, most, draw(some.integers(sum(least), sum(most)))


@given(problems())
def test_no_division_has_a_faster_slowest_member(problem: tuple[np.ndarray, list[int], list[int], int]) -> None:
    times, least, most, size = problem
    (found,) = divide(times, np.array(least), np.array(most), np.ones((1, len(least)), bool), size)
    assert found.sum() == size
    assert all(low <= batch <= high for low, batch, high in zip(least, found, most, strict=True))
    assert max(times[i, batch] for i, batch in enumerate(found)) == brute_force(times, least, most, size)


@given(problems(), some.data())
def test_many_clusters_are_divided_as_each_by_itself(
    problem: tuple[np.ndarray, list[int], list[int], int], data: some.DataObject
) -> None:
    times, least, most, size = problem
    all_sets = np.array(list(itertools.product([False, True], repeat=len(least)))[1:])
    able = (all_sets * least).sum(axis=1) <= size
    able &= size <= (all_sets * most).sum(axis=1)
    assume(able.any())
    members = all_sets[able]
    together = divide(times, np.array(least), np.array(most), members, size)
    for row, found in zip(members, together, strict=True):
        at = np.flatnonzero(row)
        (alone,) = divide(times[at], np.array(least)[at], np.array(most)[at], np.ones((1, at.size), bool), size)
        assert (found[~row] == 0).all()
        assert max(times[at, found[at]]) == max(times[at, alone])
        assert found.sum() == size


def test_devices_as_fast_as_one_another_have_as_much_even_where_time_does_not_grow() -> None:
    flat = np.array([[1.0] * 41, [1.0] * 41])
    assert divide(flat, np.array([1, 1]), np.array([40, 40]), np.ones((1, 2), bool), 40).tolist() == [[20, 20]]


def headroom(fleet: Profile, steps: Mapping[str, StepProfile]) -> dict[str, StepHeadroom]:
    return {name: StepHeadroom.on(fleet.devices[name], each) for name, each in steps.items()}


def step(gradient_s: float, **changes: object) -> StepProfile:
    return profiles.step(gradient_s, half_batch_s=seconds(gradient_s / 2), **changes)


def test_a_device_four_times_as_fast_has_four_times_as_many() -> None:
    steps = {"a": step(0.1), "b": step(0.4)}
    fleet = profiles.profile({name: profiles.device(each) for name, each in steps.items()})
    shares = shares_of_devices(fleet, steps, headroom(fleet, steps), 80, RING)
    (found,) = shares.batches(np.array([[True, True]]), of_steps(steps))
    assert found.tolist() == [64, 16]
    assert shares.gradients(np.array([found])) == pytest.approx(np.array([[0.2, 0.2]]))
    assert shares.even().tolist() == [40, 40]


def test_a_device_that_others_on_its_kernel_slow_down_has_fewer_beside_them() -> None:
    beside = Contention(("a", "b"), 3.0, 0.0)
    steps = {"a": step(0.1, contention=beside), "b": step(0.1, contention=beside._replace(factor=1.0)), "c": step(0.1)}
    fleet = profiles.profile({name: profiles.device(each) for name, each in steps.items()})
    shares = shares_of_devices(fleet, steps, headroom(fleet, steps), 64, RING)
    found = shares.batches(np.array([[True, True, False], [True, False, True]]), of_steps(steps))
    assert found.tolist() == [[16, 48, 0], [32, 0, 32]]


def test_seconds_that_no_sample_changes_count_as_well() -> None:
    steps = {"a": step(0.1), "b": step(0.1, copy_s=seconds(0.1))}
    fleet = profiles.profile({name: profiles.device(each) for name, each in steps.items()})
    shares = shares_of_devices(fleet, steps, headroom(fleet, steps), 64, RING)
    assert shares.batches(np.array([[True, True]]), of_steps(steps)).tolist() == [[48, 16]]


def test_bounds_are_what_can_be_predicted_and_what_fits() -> None:
    tight = StepMemory((BatchMemory(16, 3000 * MB), BatchMemory(32, 3400 * MB)))
    steps = {"a": step(0.1), "b": step(0.1, memory=tight), "once": changed(step(0.1), half_batch_s=seconds(1, count=0))}
    fleet = profiles.profile({name: profiles.device(each) for name, each in steps.items()})
    shares = shares_of_devices(fleet, steps, headroom(fleet, steps), 1000, RING)
    assert shares.least.tolist() == [4, 4, 32]
    fits = math.floor((0.9 * 2**32 - 2600 * MB) / (25 * MB))
    assert shares.most.tolist() == [128, fits, 32]
    assert shares.possible(np.array([[True, True, False], [True, True, True]])).tolist() == [False, False]
    alone = np.array([[True, False, False], [False, False, True]])
    assert shares_of_devices(fleet, steps, headroom(fleet, steps), 100, RING).possible(alone).tolist() == [True, False]


def test_noise_that_makes_more_samples_faster_is_smoothed() -> None:
    noisy = step(0.1, other_batches=(BatchTiming(64, seconds(0.09)),))
    fleet = profiles.profile({"a": profiles.device(noisy), "b": profiles.device(noisy)})
    steps = {"a": noisy, "b": noisy}
    shares = shares_of_devices(fleet, steps, headroom(fleet, steps), 100, RING)
    (found,) = shares.batches(np.array([[True, True]]), of_steps(steps))
    assert found.sum() == 100


def test_a_device_into_which_not_even_the_fewest_fit_is_named() -> None:
    full = step(0.1, memory=StepMemory((BatchMemory(16, 5000 * MB), BatchMemory(32, 6000 * MB))))
    fleet = profiles.profile({"a": profiles.device(), "b": profiles.device(full)})
    steps = {"a": step(0.1), "b": full}
    found = too_small(fleet, steps, headroom(fleet, steps))
    assert list(found) == ["b"] and "batch 4 needs 4.25 GB of its memory" in found["b"].text
