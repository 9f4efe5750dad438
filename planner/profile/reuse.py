"""Measurements of an earlier profile are reused for as long as they hold. Pure."""

from collections.abc import Set
from typing import Any

from planner.fleet.device import Device, Fleet, SshLogin
from planner.profile.file import Declared, DeviceProfile, Profile
from planner.profile.request import ProfileRequest
from profilers.records.device import Facts
from profilers.records.links import LinkProfile
from profilers.records.steps import StepProfile

#: A link is measured again after a day, for other traffic on the network changes.
MAX_LINK_AGE_S = 86_400.0
#: What the data plane reaches a device by.
ADDRESS = ("host", "data_address", "data_interface")


def carry_over(before: Profile | None, start: Profile, fleet: Fleet, chosen: Set[str], again: Set[str]) -> Profile:
    """``start`` with all devices of the fleet, and those measurements of ``before`` that hold.

    chosen: devices about to be measured, whose failures are dropped; again: to measure afresh.
    A link is dropped with either end, after a day, or where an end has another address.
    """
    devices = {device.name: DeviceProfile(declared(device), None, None, (), None, {}) for device in fleet.devices}
    start = start._replace(devices=devices)
    if before is None:
        return start
    for name, known in before.devices.items():
        if name in devices and name not in again:
            reused = known._replace(error=None, failures={}) if name in chosen else known
            devices[name] = reused._replace(device=devices[name].device)
    moved = {
        name
        for name, known in before.devices.items()
        if name in devices and any(known.device.get(key) != devices[name].device[key] for key in ADDRESS)
    }
    names, oldest = set(devices), start.created_s - MAX_LINK_AGE_S

    def holds(link: LinkProfile) -> bool:
        ends = {link.source, link.target}
        return link.measured_s > oldest and ends <= names and not ends <= again and not ends & moved

    links = tuple(link for link in before.links if holds(link))
    incasts = tuple(
        incast
        for incast in before.incasts
        if incast.measured_s > oldest and {incast.host, *incast.bytes_per_s} == names and not again | moved
    )
    took_s = before.took_s if links else {}
    return start._replace(links=links, incasts=incasts, took_s=took_s)


def timing_holds(
    steps: StepProfile, fingerprint: str, request: ProfileRequest, device: Device, facts: Facts | None
) -> bool:
    """Whether a device's earlier timing of a model, which has ``fingerprint`` now, still holds."""
    installed = str(facts and facts.frameworks.get(steps.framework, {}).get("version"))
    setup = steps.setup
    return (
        (setup.fingerprint, setup.protocol, setup.slowdown, setup.compute)
        == (fingerprint, request.protocol, device.slowdown, request.compute)
        # NVIDIA's 2.7.0+nv22.1 reports itself as 2.7.0.
        and setup.framework_version in (installed, installed.partition("+")[0])
    )


def declared(device: Device) -> dict[str, Any]:
    """What predictions and links depend on in a device's entry of the fleet file."""
    known = {key: getattr(device, key) for key in Declared._fields if key not in SshLogin._fields}
    return {"host": device.ssh and device.ssh.host, "port": device.ssh and device.ssh.port, **known}


def identity(facts: Facts) -> tuple[Any, ...]:
    """What must be unchanged for earlier measurements to hold."""
    return (facts.hostname, facts.board, facts.machine, facts.processor, facts.gpus)
