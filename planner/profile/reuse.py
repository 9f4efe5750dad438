"""What of an earlier profile still holds. Pure."""

from collections.abc import Set
from typing import Any

from planner.fleet.device import Device, Fleet
from planner.profile.file import DeviceProfile, Profile
from planner.profile.request import ProfileRequest
from profilers import records, steptime

#: A link is measured again after a day: what a device computes stays, what else its network carries does not.
LINK_AGE_S = 86_400.0


def carry_over(before: Profile | None, start: Profile, fleet: Fleet, chosen: Set[str], again: Set[str]) -> Profile:
    """``start`` with all devices of the fleet, and with what an earlier profile knows of them.

    chosen: devices about to be measured; failures of theirs and of models on them are forgotten.
    again: devices of which nothing is kept.
    A link is dropped with either of its ends, a day after it was measured, or where an end is now
    reached by another way.
    """
    devices = {device.name: DeviceProfile(declared(device), None, None, (), None, {}) for device in fleet.devices}
    start = start._replace(devices=devices)
    if before is None:
        return start
    for name, known in before.devices.items():
        if name in devices and name not in again:
            kept = known._replace(error=None, failures={}) if name in chosen else known
            devices[name] = kept._replace(device=devices[name].device)
    moved = {device.name for device in fleet.devices if _moved(device, before.devices.get(device.name))}
    names, oldest = set(devices), start.created_s - LINK_AGE_S

    def holds(link: records.LinkProfile) -> bool:
        ends = {link.source, link.target}
        return link.measured_s > oldest and ends <= names and not ends <= again and not ends & moved

    links = tuple(link for link in before.links if holds(link))
    fans = tuple(
        fan
        for fan in before.fans
        if fan.measured_s > oldest and {fan.host, *fan.bytes_per_s} == names and not again | moved
    )
    took_s = before.took_s if links else {}
    return start._replace(links=links, fans=fans, took_s=took_s, link_errors=before.link_errors)


def timing_holds(
    steps: records.StepProfile, fingerprint: str, wanted: ProfileRequest, device: Device, facts: records.Facts | None
) -> bool:
    """Whether a device's earlier timing of a model, which now has this fingerprint, need not be made again.

    One that was cut short because it served the plan of a few steps is too crude for one of many.
    """
    return (
        (steps.fingerprint, steps.protocol, steps.slowdown) == (fingerprint, wanted.protocol, device.slowdown)
        and facts is not None
        and _is_version(steps.framework_version, facts.frameworks.get(steps.framework, {}).get("version"))
        and (steps.protocol != "adaptive" or _fine_enough(steps, wanted.steps_planned))
    )


def _is_version(version: str, installed: str | None) -> bool:
    """NVIDIA's TensorFlow calls itself 2.7.0 where it is installed as 2.7.0+nv22.1."""
    return installed is not None and version in (installed, installed.partition("+")[0])


def _fine_enough(steps: records.StepProfile, steps_planned: int) -> bool:
    return (
        steps.precise
        or len(steps.gradient_s.values) >= steptime.TIMED_LIMIT
        or (steps.steps_planned or 0) >= steps_planned
    )


def declared(device: Device) -> dict[str, Any]:
    """What the fleet file says of a device that a prediction needs, and what its links depend on."""
    return {
        "host": device.host,
        "port": device.port,
        "data_address": device.data_address,
        "data_interface": device.data_interface,
        "kind": device.kind,
        "idle_watts": device.idle_watts,
        "max_watts": device.max_watts,
        "rate_bytes_per_s": device.rate_bytes_per_s,
        "slowdown": device.slowdown,
    }


def _moved(device: Device, before: DeviceProfile | None) -> bool:
    """Whether a device is now reached by another way than when its links were measured."""
    keys = ("host", "data_address", "data_interface")
    return before is not None and any(before.device.get(key) != declared(device)[key] for key in keys)


def identity(facts: records.Facts) -> tuple[Any, ...]:
    """What must stay for earlier measurements to hold."""
    return (facts.hostname, facts.board, facts.machine, facts.online_cores, facts.usable_cores, facts.gpus)
