"""Devices a, b and c share a kernel, d has its own: a gradient takes 0.1 s, beside two 0.14 s."""

import math
from collections.abc import Mapping

import numpy as np
import pytest

from planner.plan.file import PlannedWorker
from planner.plan.recommend import make_plan, recommend
from planner.plan.request import RecommendRequest
from planner.predict.clusters import Candidates
from planner.predict.costs import Costs, costs_of
from planner.predict.kernel_regimes import of_cluster, regimes
from planner.predict.predict import predict
from planner.profile.file import Profile
from profilers.records import Crowded, MachineSpeed, Repeat, StepProfile
from tests.planner import profiles

ALONE, BESIDE = MachineSpeed(400e-6, 0.0, 100, 0.0, None), MachineSpeed(440e-6, 0.0, 100, 0.0, None)


def crowded(gradient_s: float = 0.14, spread: float = 0.0) -> StepProfile:
    none = profiles.seconds(0.0)
    steps = Repeat(profiles.seconds(gradient_s, spread), none, none, gradient_s, BESIDE)
    return profiles.step(0.1, crowded=Crowded(("a", "b", "c"), steps), accelerator="cpu", speed=ALONE)


def four(shared: StepProfile | None = None, more: str = "d", rates: Mapping[str, float] | None = None) -> Profile:
    made = crowded() if shared is None else shared
    devices = {name: profiles.device(made) for name in "abc"}
    for name in "abc":
        devices[name] = devices[name]._replace(facts=profiles.facts()._replace(boot_id="one"))
    return profiles.profile(devices | {name: profiles.device(profiles.step(0.1)) for name in more}, rates)


def cluster(costs: Costs, names: str) -> Candidates:
    mask = sum(1 << costs.names.index(name) for name in names)
    return Candidates(np.array([mask]), np.array([costs.names.index(names[0])]))


def gradient_s(costs: Costs, names: str) -> np.ndarray:
    found = of_cluster(costs, cluster(costs, names), 0)
    return found.devices.gradient_s[[costs.names.index(name) for name in names]]


@pytest.mark.parametrize(("names", "most_s"), [("a", 0.1), ("d", 0.1), ("ad", 0.1), ("ab", 0.12), ("abcd", 0.14)])
def test_a_gradient_lengthens_in_proportion_to_the_others_that_compute_on_its_kernel(names: str, most_s: float) -> None:
    costs = costs_of(four())
    cycle_s = predict(costs, cluster(costs, names), 1000).cycle_s[0][[costs.names.index(name) for name in names]]
    found_s = gradient_s(costs, names)
    for i, name in enumerate(names):
        duty = [found_s[k] / cycle_s[k] for k, other in enumerate(names) if {name, other} <= set("abc") and k != i]
        assert found_s[i] == pytest.approx(0.1 * (1 + 0.4 * sum(duty) / 2), rel=0.02)  # by tenths of a member
        assert found_s[i] <= most_s + 1e-9


def test_members_that_wait_slow_the_others_less() -> None:
    fast, slow = (four(rates=dict.fromkeys("abcd", rate)) for rate in (1e9, 1e5))
    assert gradient_s(costs_of(fast), "abc") == pytest.approx([0.136] * 3, abs=0.005)
    assert gradient_s(costs_of(slow), "abc") == pytest.approx([0.1, 0.12, 0.12], abs=0.005)  # a hosts the server


def test_the_others_count_by_the_part_of_their_time_in_which_they_compute() -> None:
    mates = costs_of(four()).mates
    assert mates is not None
    duty = np.array([[1.0, 1.0, 1.0, 1.0], [0.5, 0.25, 0.0, 1.0], [0.5, 0.0, 0.0, 1.0]])
    expected = [[2.0, 2.0, 2.0, 0.0], [0.25, 0.5, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    assert mates.computing(duty) == pytest.approx(np.array(expected))


@pytest.mark.parametrize(("others", "slower"), [(0.0, 1.0), (0.5, 1.1), (1.0, 1.2), (2.0, 1.4), (3.0, 1.4)])
def test_a_gradient_is_slowed_in_proportion_up_to_what_was_timed(others: float, slower: float) -> None:
    mates = costs_of(four()).mates
    assert mates is not None
    assert mates.slowdowns(np.full(4, others)) == pytest.approx([slower, slower, slower, 1.0])


def test_devices_with_kernels_of_their_own_and_older_profiles_keep_one_time() -> None:
    assert costs_of(profiles.three()).mates is None
    assert costs_of(four(profiles.step(0.1))).mates is None


def test_devices_with_kernels_of_their_own_divide_the_candidates_no_further() -> None:
    costs = costs_of(four(more="defgh"))
    masks = np.arange(1, 1 << 8)
    hosts = np.array([math.floor(math.log2(mask)) for mask in masks])
    found = regimes(costs, Candidates(masks, hosts))
    assert np.array_equal(np.sort(np.concatenate([rows for _, rows in found])), np.arange(masks.size))
    by_shared: dict[int, set[bytes]] = {}
    for each, rows in found:
        for row in rows:
            by_shared.setdefault(int(masks[row]) & 0b111, set()).add(each.devices.gradient_s.tobytes())
    assert all(len(by_shared[mask]) == 1 for mask in (0b000, 0b001, 0b010, 0b100))


def test_the_error_of_the_time_beside_others_comes_on_top_of_any_other() -> None:
    costs = costs_of(four(crowded(spread=0.1)))
    errors = costs.devices.errors._replace(gradient=np.full(4, 0.12))  # as a calibration has it
    costs = costs._replace(devices=costs.devices._replace(errors=errors))
    assert costs.mates is not None
    alone, beside = (
        of_cluster(costs, Candidates(np.array([mask]), np.array([0])), 0).devices.errors.gradient[0]
        for mask in (0b0001, 0b0111)
    )
    assert costs.mates.error[0] > 0
    assert np.hypot(0.12, costs.mates.error[0]) >= beside > alone == 0.12


def test_the_operator_is_told_which_devices_are_slower_beside_others() -> None:
    def told(shared: StepProfile) -> list[str]:
        return [note for note in costs_of(four(shared)).notes if "kernel" in note]

    assert [note.partition(": ")[2] for note in told(crowded())] == ["a 1.4 times, b 1.4 times, c 1.4 times"]
    assert told(crowded(gradient_s=0.104)) == []
    (unknown,) = told(profiles.step(0.1))
    assert unknown.startswith("not timed beside the other devices on their kernel: a, b, c;")


def test_all_candidates_at_once_are_those_of_each_set_of_members() -> None:
    costs = costs_of(four())
    candidates = Candidates(np.array([0b0001, 0b0111, 0b0011, 0b1001, 0b1111, 0b0010]), np.array([0, 0, 1, 3, 2, 1]))
    together = predict(costs, candidates, 1000)
    for row in range(candidates.hosts.size):
        only = predict(costs, candidates.at(np.array([row])), 1000)
        assert together.time_s[row] == pytest.approx(only.time_s[0])
        assert together.candidates.masks[row] == only.candidates.masks[0]
        assert together.time_errors.gradient[row] == pytest.approx(only.time_errors.gradient[0])


def test_a_plan_tells_the_time_and_the_speed_beside_the_other_members() -> None:
    def worker(*include: str) -> PlannedWorker:
        request = RecommendRequest({"time": 1.0}, steps=100, include=include, exclude=[*set("abcd") - set(include)])
        return make_plan(recommend(four(), request), "fleet.toml").workers[0]

    alone, beside = worker("a"), worker("a", "b", "c")
    assert alone.speed == ALONE and alone.computing_s == pytest.approx(0.1 + 0.01)  # it updates itself
    assert beside.speed is not None and beside.speed.loop_s is not None and beside.computing_s is not None
    part = (beside.computing_s - 0.1) / 0.04
    assert 0.2 < part < 1.0
    assert beside.speed.loop_s == pytest.approx(400e-6 + part * 40e-6)
