"""A lab is built, shown, changed and removed as a whole."""

import ipaddress
import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from planner.console import OnProgress
from profilers.cpu_quota import usable_cores

from . import cgroups, fleetwriter, network, programs, sshd, state, traffic_control
from .device import Condition, LabDevice
from .errors import LabError
from .spec import DeviceSpec, Spec
from .state import AppliedDevice, LabState

#: Networks available to labs: 10.77.N.0/24.
NETWORKS = tuple(ipaddress.IPv4Network(f"10.77.{subnet}.0/24") for subnet in range(1, 255))

CONTROLLER_PORT = "controller"


class DeviceStatus(NamedTuple):
    """A device's settings and its present condition."""

    device: DeviceSpec
    address: str
    condition: Condition


class Lab:
    """A lab on this machine. Raises LabError where the machine cannot host one."""

    def __init__(self, name: str) -> None:
        programs.require_machine()
        self._names = state.LabNames(name)
        self._groups = cgroups.mounted(Path("/proc/self/mountinfo").read_text())

    def up(self, spec: Spec, fleet: Path, on_progress: OnProgress) -> list[str]:
        """Make the lab equal to the spec and write the fleet file.

        Returns the names of devices that are new or have other rates or processors than before.
        """
        fleetwriter.require_ours(fleet, self._names)
        for device in spec.devices:
            require_cores(device.name, device.cpus)
        _require_shapers(spec)
        with state.locked():
            current = state.load(self._names) or self._create()
            self._ensure_switch(current)
            current = self._remove_others(current, spec)
            targets = _targets(current, spec)
            changed = [each.device.name for each in targets if differs(current.find(each.device.name), each)]
            for target in targets:
                on_progress(target.device.name, "building", None)
                current = self._build(current, target)
            for lab_device in self._devices(current):
                on_progress(lab_device.name, "starting", None)
                lab_device.wait()
            self._pin(current)
            sshd.write_client(self._names.folder, map(LabDevice.known_host, self._devices(current)))
            fleet.write_text(fleetwriter.fleet_text(self._names, current, spec.devices), encoding="utf-8")
        return changed

    def down(self) -> bool:
        """Remove everything that has the lab's name; return whether there was anything."""
        with state.locked():
            return self._remove_all()

    def status(self) -> list[DeviceStatus]:
        current = self._current()
        pairs = zip(current.devices, self._devices(current), strict=True)
        return [DeviceStatus(applied.device, each.address, each.condition()) for applied, each in pairs]

    def set(self, name: str, rate_bytes_per_s: float | None, cpus: float | None) -> None:
        """Change a device while it runs; None leaves a value as it is.

        Raises LabError for more cores than this machine has.
        """
        if cpus is not None:
            require_cores(name, cpus)
        with state.locked():
            current = self._current()
            old = current.of(name)
            device = old.device if rate_bytes_per_s is None else old.device._replace(rate_bytes_per_s=rate_bytes_per_s)
            device = device if cpus is None else device._replace(cpus=cpus)
            self._pin(self._apply(current, old._replace(device=device)))

    def device(self, name: str) -> LabDevice:
        current = self._current()
        return self._device(current, current.of(name))

    def do(self, name: str, *verbs: Callable[[LabDevice], None]) -> None:
        """Apply methods of ``LabDevice`` to a device: stop, kill, cut or restore it."""
        with state.locked():
            lab_device = self.device(name)
            for verb in verbs:
                verb(lab_device)
            self._pin(self._current())

    def _current(self) -> LabState:
        current = state.load(self._names)
        if current is None:
            raise LabError(f'no lab "{self._names.lab}" is up; `python -m benchmarks.lab up SPEC.toml` builds it')
        return current

    def _create(self) -> LabState:
        """Create a lab without devices on a free network, after removing what a crash left."""
        self._remove_all()
        self._names.folder.mkdir(parents=True, mode=0o700)
        sshd.ensure_key(self._names.client)
        subnet = int(network.free_network(NETWORKS).network_address) >> 8 & 0xFF
        return state.save(self._names, LabState(subnet, ()))

    def _ensure_switch(self, current: LabState) -> None:
        network.add_switch(self._names.switch)
        if not network.has_port(self._names.switch, CONTROLLER_PORT):
            network.unplug(None, self._names.interface)
            address = current.address(state.CONTROLLER)
            network.plug(self._names.switch, CONTROLLER_PORT, None, address, self._names.interface)

    def _remove_others(self, current: LabState, spec: Spec) -> LabState:
        names = {device.name for device in spec.devices}
        for other in [each for each in current.devices if each.device.name not in names]:
            self._device(current, other).remove()
            current = state.save(self._names, current.without(other.device.name))
        return current

    def _build(self, current: LabState, target: AppliedDevice) -> LabState:
        old = current.find(target.device.name)
        lab_device = self._device(current, target)
        if old and old.device.quota_visible != target.device.quota_visible:
            lab_device.kill()  # running programs keep what they see
        if old is None or not lab_device.cabled():
            current = state.save(self._names, current.with_device((old or target)._replace(shaped=False)))
        lab_device.build()
        current = self._apply(current, target)
        lab_device.start()
        return current

    def _apply(self, current: LabState, target: AppliedDevice) -> LabState:
        """Apply limits and rates to a device; a cable with the right rates is left alone."""
        old = current.of(target.device.name)
        lab_device = self._device(current, target)
        lab_device.limit(target.device)
        if not old.shaped or old.rates != target.rates:
            current = state.save(self._names, current.with_device(target._replace(shaped=False)))
            lab_device.shape(target.device, target.rates_to)
        return state.save(self._names, current.with_device(target._replace(shaped=True)))

    def _remove_all(self) -> bool:
        switch = self._names.switch
        namespaces = [each for each in network.namespaces() if each == switch or each.startswith(f"{switch}-")]
        found = bool(namespaces) or self._names.folder.exists() or self._groups.exists(switch)
        found = found or network.has_interface(None, self._names.interface)
        with ExitStack() as removals:  # in reverse order, each even if another one fails
            removals.callback(state.remove, self._names)
            for namespace in namespaces:
                removals.callback(network.remove_namespace, namespace)
            removals.callback(network.unplug, None, self._names.interface)
            removals.callback(self._groups.remove, switch)
        return found

    def _devices(self, current: LabState) -> list[LabDevice]:
        return [self._device(current, applied) for applied in current.devices]

    def _device(self, current: LabState, applied: AppliedDevice) -> LabDevice:
        address = current.address(applied.host)
        device = applied.device
        return LabDevice(
            self._names, self._groups, device.name, applied.host, address, quota_visible=device.quota_visible
        )

    def _pin(self, current: LabState) -> None:
        """Pin every device to its core, or all devices to all cores where they do not fit."""
        machine = os.sched_getaffinity(0)
        cpus = {each.device.name: each.device.cpus for each in current.devices}
        core_of = cgroups.assign_cores(cpus, sorted(machine))
        for lab_device in self._devices(current):
            lab_device.pin({core_of[lab_device.name]} if core_of else machine)


def require_cores(name: str, cpus: float) -> None:
    """Raises LabError for more cores than this machine has."""
    most = usable_cores()
    if cpus > most:
        raise LabError(f"{name}: {cpus:g} cpus are more than this machine has; write {most:g} or less")


def differs(old: AppliedDevice | None, target: AppliedDevice) -> bool:
    """Whether earlier measurements of a device no longer hold."""
    return old is None or not old.shaped or _speed(old) != _speed(target)


def _speed(of: AppliedDevice) -> tuple[object, ...]:
    return of.device.cpus, of.device.quota_visible, of.rates


def _require_shapers(spec: Spec) -> None:
    programs.require_shaper(["sch_tbf"], traffic_control.one_rate("lo", 1e6))
    if any(device.delay_s for device in spec.devices):
        remedy = ', or remove "delay" from the spec'
        programs.require_shaper(["sch_tbf", "sch_netem"], traffic_control.one_rate("lo", 1e6, delay_s=0.01), remedy)
    if spec.links:
        programs.require_shaper(["sch_htb", "cls_u32"], traffic_control.rates_by_target("lo", 1e6, {"127.0.0.2": 1e5}))


def _targets(current: LabState, spec: Spec) -> list[AppliedDevice]:
    """The devices of a spec, each with its present host number or a free one."""
    hosts = {each.device.name: each.host for each in current.devices}
    for device in spec.devices:
        hosts.setdefault(device.name, state.free_host(hosts.values()))
    addresses = {name: current.address(host) for name, host in hosts.items()}
    rates: dict[str, dict[str, float]] = {name: {} for name in hosts}
    for link in spec.links:
        rates[link.source][addresses[link.target]] = link.rate_bytes_per_s
        if not link.one_way:
            rates[link.target][addresses[link.source]] = link.rate_bytes_per_s
    return [AppliedDevice(device, hosts[device.name], rates[device.name]) for device in spec.devices]
