"""Measurements of an earlier profile are reused for as long as they hold."""

from pathlib import Path
from typing import Any

import pytest

from planner.fleet.device import Device, Fleet, SshLogin
from planner.profile.file import Profile
from planner.profile.request import ProfileRequest
from planner.profile.reuse import MAX_LINK_AGE_S, carry_over, declared, timing_holds
from profilers.records.json_values import SCHEMA
from profilers.records.links import IncastProfile
from profilers.records.steps import ComputeSettings, StepProfile
from tests.planner import profiles

NOW = 1e9
START = Profile(SCHEMA, "test", NOW, {}, (), (), {}, 100_000)


def fleet(**changes: dict[str, Any]) -> Fleet:
    """Devices a, b and c, some of them changed or left out (None)."""
    entries = {name: changes.get(name, {}) for name in "abc"}
    devices = tuple(Device(name=name, **known) for name, known in entries.items() if known is not None)
    return Fleet(devices=devices, path=Path("fleet.toml"))


def measured(age_s: float = 60.0) -> Profile:
    failed = profiles.device()._replace(error="it failed")
    devices = {device.name: failed._replace(device=declared(device)) for device in fleet().devices}
    links = tuple(profiles.link(a, b)._replace(measured_s=NOW - age_s) for a in "abc" for b in "abc")
    rates = {name: {peer: 1e6 for peer in "abc" if peer != name} for name in "abc"}
    incasts = tuple(IncastProfile(name, "in", "iperf3", rates[name], NOW - age_s) for name in "abc")
    return START._replace(devices=devices, links=links, incasts=incasts, took_s={"links": 9.0})


def ends(profile: Profile) -> set[str]:
    return {link.source + link.target for link in profile.links}


EVERY = {a + b for a in "abc" for b in "abc"}


def test_links_of_yesterday_are_measured_again_and_steps_are_not() -> None:
    made = carry_over(measured(MAX_LINK_AGE_S + 1), START, fleet(), set("abc"), set())
    assert made.devices["a"].steps
    assert (made.links, made.incasts, made.took_s) == ((), (), {})


def test_failures_of_an_earlier_profile_stay_only_where_nothing_is_measured_now() -> None:
    """Of devices and of models alike, whichever models the new profile asks for."""
    before = measured()
    for name in "abc":
        before.devices[name] = before.devices[name]._replace(failures={"vgg19": "out of memory"})
    made = carry_over(before, START, fleet(c=None), {"a"}, set())
    assert {name: (known.error, known.failures) for name, known in made.devices.items()} == {
        "a": (None, {}),
        "b": ("it failed", {"vgg19": "out of memory"}),
    }
    assert made.devices["a"].steps == before.devices["a"].steps


def test_a_fresh_device_loses_its_own_part_and_its_loopback_but_not_its_links_to_others() -> None:
    made = carry_over(measured(), START, fleet(), {"a"}, {"a"})
    assert made.devices["a"].steps == () and made.devices["b"].steps
    assert ends(made) == EVERY - {"aa"}
    assert made.incasts == ()


def test_a_device_that_left_the_fleet_takes_its_links_with_it() -> None:
    made = carry_over(measured(), START, fleet(c=None), {"a", "b"}, set())
    assert list(made.devices) == ["a", "b"]
    assert ends(made) == {"aa", "ab", "ba", "bb"}
    assert made.incasts == ()


@pytest.mark.parametrize(
    "way", [{"ssh": SshLogin("10.0.0.7")}, {"data_address": "10.1.0.7"}, {"data_interface": "eth1"}]
)
def test_a_device_that_is_reached_by_another_way_keeps_its_steps_alone(way: dict[str, str]) -> None:
    made = carry_over(measured(), START, fleet(b=way), set("abc"), set())
    assert made.devices["b"].steps
    assert ends(made) == {"aa", "ac", "ca", "cc"}
    assert made.incasts == ()


# -- timings ---------------------------------------------------------------------------------------

REQUEST = ProfileRequest(("net",), steps_planned=1000)


def holds(
    steps: StepProfile, fingerprint: str = "abc", request: ProfileRequest = REQUEST, slowdown: float = 1.0
) -> bool:
    return timing_holds(steps, fingerprint, request, Device(name="a", slowdown=slowdown), profiles.facts())


def test_a_timing_holds_for_the_same_model_protocol_version_and_slowdown() -> None:
    assert holds(profiles.step())
    assert not holds(profiles.step(), fingerprint="other")
    assert not holds(profiles.step(), request=REQUEST._replace(protocol="paper"))
    assert not holds(profiles.step(framework_version="2.1"))
    assert not holds(profiles.step(), slowdown=2.0)
    assert not holds(profiles.step(), request=REQUEST._replace(compute=ComputeSettings(0, "bf16")))
    assert holds(profiles.step(precision="bf16"), request=REQUEST._replace(compute=ComputeSettings(0, "bf16")))
    assert not holds(profiles.step(precision="bf16"))
    assert not holds(profiles.step(), request=REQUEST._replace(compute=ComputeSettings(8)))
    assert holds(profiles.step(micro_batch=8), request=REQUEST._replace(compute=ComputeSettings(8)))
    assert not timing_holds(profiles.step(), "abc", REQUEST, Device(name="a"), None)


@pytest.mark.parametrize(("installed", "same"), [("2.0", True), ("2.0+nv22.1", True), ("2.0.1", False), (None, False)])
def test_the_build_that_a_distribution_names_is_no_other_version(installed: str | None, same: bool) -> None:
    facts = profiles.facts()._replace(frameworks={"torch": {"version": installed}})
    assert timing_holds(profiles.step(), "abc", REQUEST, Device(name="a"), facts) == same
