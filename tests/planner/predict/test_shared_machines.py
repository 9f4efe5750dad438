"""Devices on one machine slow one another down, as far as they compute."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.strategies.strategy import Strategy
from planner.predict.clusters import Candidates
from planner.predict.costs import costs_of
from planner.predict.predict import predict
from planner.predict.shared_machines import slowed_by
from planner.profile.file import Profile
from profilers.records import Beside, StepProfile
from tests.planner import profiles

ALL = 0b111


def shared(more: float = 0.2, cores: tuple[float, ...] = (0.6, 0.3, 0.3), apart: str = "") -> Profile:
    """Three devices on one machine whose gradients of 0.1 s take ``more`` beside the others.

    apart: the devices that are on other machines.
    """
    devices = {}
    for name, share in zip("abc", cores, strict=True):
        others = tuple(sorted(set("abc") - {name} - set(apart)))
        beside = None if name in apart else Beside(others, profiles.seconds(0.1 * (1 + more)))
        made = profiles.device(profiles.step(0.1, accelerator="cpu", beside=beside), cores=share)
        assert made.facts is not None
        devices[name] = made._replace(facts=made.facts._replace(boot_id=name if name in apart else "one"))
    return profiles.profile(devices)


def steps_of(profile: Profile) -> dict[str, StepProfile]:
    return {name: device.steps[0] for name, device in profile.devices.items()}


def test_each_other_device_slows_one_down_in_proportion_to_its_cores() -> None:
    profile = shared()
    found = slowed_by(profile, steps_of(profile))
    assert found == pytest.approx(np.array([[0, 0.1, 0.1], [0.2 * 2 / 3, 0, 0.2 / 3], [0.2 * 2 / 3, 0.2 / 3, 0]]))


def test_devices_of_other_machines_neither_slow_nor_are_slowed() -> None:
    profile = shared(apart="c")
    found = slowed_by(profile, steps_of(profile))
    assert found == pytest.approx(np.array([[0, 0.2, 0], [0.2, 0, 0], [0, 0, 0]]))


@given(st.floats(-0.5, 0.0))
def test_what_is_no_slower_beside_others_is_not_slowed(more: float) -> None:
    profile = shared(more)
    assert slowed_by(profile, steps_of(profile)) is None


def test_a_difference_within_its_error_does_not_count() -> None:
    profile = shared(0.01)
    steps = {name: step._replace(gradient_s=profiles.seconds(0.1, 0.5)) for name, step in steps_of(profile).items()}
    assert slowed_by(profile, steps) is None


def predicted(profile: Profile, strategy: str, mask: int) -> float:
    costs = costs_of(profile, strategy=Strategy.from_text(strategy))
    return float(predict(costs, Candidates(np.array([mask]), np.array([0])), 3000).cycle_s[0, 0])


def test_alone_a_device_takes_what_it_takes_alone() -> None:
    assert predicted(shared(), "allreduce", 1) == predicted(shared(0.0), "allreduce", 1)


def test_members_that_wait_for_links_slow_one_another_down_less_than_those_that_compute() -> None:
    fast, slow = shared(), shared()._replace(links=profiles.links("abc", dict.fromkeys("abc", profiles.MBIT)))
    longer = {}
    for name, profile in {"fast": fast, "slow": slow}.items():
        alone = profile._replace(
            devices={
                key: device._replace(steps=(device.steps[0]._replace(beside=None),))
                for key, device in profile.devices.items()
            }
        )
        longer[name] = predicted(profile, "allreduce", ALL) - predicted(alone, "allreduce", ALL)
    assert 0.0 < longer["slow"] < 0.2 * longer["fast"]
    assert longer["fast"] < 0.2 * 0.1 + 1e-9


@pytest.mark.parametrize("strategy", ["parameter-server", "local-sgd", "dlion", "parameter-server:sync=synchronous"])
def test_every_kind_of_cluster_is_slowed_down(strategy: str) -> None:
    assert predicted(shared(), strategy, ALL) > predicted(shared(0.0), strategy, ALL)
