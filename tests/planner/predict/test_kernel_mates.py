"""Devices a, b and c share a kernel, d has its own: a gradient takes 0.1 s, beside two 0.14 s."""

import numpy as np
import pytest

from planner.predict.clusters import Candidates
from planner.predict.costs import Costs, costs_of
from planner.predict.kernel_regimes import of_cluster, regimes
from planner.predict.predict import predict
from planner.profile.file import Profile
from profilers.records.steps import Contention, StepProfile
from tests.planner import profiles


def contended(factor: float = 1.4, error: float = 0.0) -> StepProfile:
    return profiles.step(0.1, contention=Contention(("a", "b", "c"), factor, error), accelerator="cpu")


def four(shared: StepProfile | None = None, more: str = "d") -> Profile:
    made = contended() if shared is None else shared
    devices = {name: profiles.device(made) for name in "abc"}
    for name in "abc":
        devices[name] = devices[name]._replace(facts=profiles.facts()._replace(boot_id="one"))
    return profiles.profile(devices | {name: profiles.device(profiles.step(0.1)) for name in more})


def cluster(costs: Costs, names: str) -> Candidates:
    mask = sum(1 << costs.names.index(name) for name in names)
    return Candidates(np.array([mask]), np.array([costs.names.index(names[0])]))


def gradient_s(costs: Costs, names: str) -> np.ndarray:
    found = of_cluster(costs, cluster(costs, names), 0)
    return found.devices.gradient_s[[costs.names.index(name) for name in names]]


@pytest.mark.parametrize(
    ("names", "expected_s"),
    [("a", [0.1]), ("d", [0.1]), ("ad", [0.1, 0.1]), ("ab", [0.14, 0.14]), ("abcd", [0.14, 0.14, 0.14, 0.1])],
)
def test_gradients_take_longer_where_a_kernel_has_two_members_or_more(names: str, expected_s: list[float]) -> None:
    assert gradient_s(costs_of(four()), names) == pytest.approx(expected_s)


def test_devices_with_kernels_of_their_own_and_older_profiles_keep_one_time() -> None:
    assert costs_of(profiles.three()).mates is None
    assert costs_of(four(profiles.step(0.1))).mates is None


def test_devices_with_kernels_of_their_own_divide_the_candidates_no_further() -> None:
    costs = costs_of(four(more="defgh"))
    masks = np.arange(1, 1 << 8)
    found = regimes(costs, Candidates(masks, np.zeros_like(masks)))
    assert len(found) == 2  # two or all of a, b and c, or fewer
    assert np.array_equal(np.sort(np.concatenate([rows for _, rows in found])), np.arange(masks.size))


def test_the_error_of_the_time_beside_others_comes_on_top_of_any_other() -> None:
    costs = costs_of(four(contended(error=0.1)))
    errors = costs.devices.errors._replace(gradient=np.full(4, 0.12))  # as a calibration has it
    costs = costs._replace(devices=costs.devices._replace(errors=errors))
    assert costs.mates is not None
    alone, beside = (
        of_cluster(costs, Candidates(np.array([mask]), np.array([0])), 0).devices.errors.gradient[0]
        for mask in (0b0001, 0b0111)
    )
    assert beside == pytest.approx(np.hypot(0.12, costs.mates.error[0])) and beside > alone == 0.12


def test_the_operator_is_told_which_devices_are_slower_beside_others() -> None:
    def told(shared: StepProfile) -> list[str]:
        return [note for note in costs_of(four(shared)).details if "kernel" in note]

    assert [note.partition(": ")[2] for note in told(contended())] == ["a 1.4 times, b 1.4 times, c 1.4 times"]
    assert told(contended(1.04)) == []
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
