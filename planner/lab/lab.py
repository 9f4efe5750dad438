"""A lab as a whole: build it, look at it, change it, remove it."""

import ipaddress
import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from planner.errors import LabError
from planner.lab import cgroups, cpu_pinning, fleetwriter, network, programs, shaping, sshd, state
from planner.lab.device import Condition, LabDevice
from planner.lab.spec import DeviceSpec, Spec
from planner.lab.state import LabState, Standing
from profilers.cores import usable_cores

OnProgress = Callable[[str, str, float | None], None]

#: 10.77.N.0/24 for a lab's N.
NETWORKS = tuple(ipaddress.IPv4Network(f"10.77.{subnet}.0/24") for subnet in range(1, 255))

CONTROLLER_PORT = "controller"


class Seen(NamedTuple):
    """A device as it was set, and what it does now."""

    device: DeviceSpec
    address: str
    condition: Condition


class Lab:
    """The lab of that name on this machine. Raises LabError where the machine cannot hold one."""

    def __init__(self, name: str) -> None:
        programs.require_machine()
        self._where = state.names(name)
        self._groups = cgroups.mounted(Path("/proc/self/mountinfo").read_text())

    def up(self, spec: Spec, fleet: Path, on_progress: OnProgress) -> list[str]:
        """Build what is missing, change what differs, remove what the spec does not have, write the fleet file.

        Names of the devices that are new or have other rates or processors than before.
        """
        fleetwriter.require_ours(fleet, self._where)
        for device in spec.devices:
            require_cores(device.name, device.cpus)
        _require_shapers(spec)
        with state.locked():
            stands = state.load(self._where) or self._founded()
            self._ensure_switch(stands)
            stands = self._without_others(stands, spec)
            all_wanted = _wanted(stands, spec)
            changed = [each.device.name for each in all_wanted if differs(stands.find(each.device.name), each)]
            for wanted in all_wanted:
                on_progress(wanted.device.name, "is built", None)
                stands = self._built(stands, wanted)
            for board in self._boards(stands):
                on_progress(board.name, "starts", None)
                board.wait()
            self._pin(stands)
            sshd.write_client(self._where.folder, map(LabDevice.known_host, self._boards(stands)))
            fleet.write_text(fleetwriter.fleet_text(self._where, stands, spec.devices), encoding="utf-8")
        return changed

    def down(self) -> bool:
        """Remove all of it, found by its name; whether there was anything."""
        with state.locked():
            return self._swept()

    def seen(self) -> list[Seen]:
        """Every device of the lab."""
        stands = self._stands()
        pairs = zip(stands.devices, self._boards(stands), strict=True)
        return [Seen(standing.device, board.address, board.condition()) for standing, board in pairs]

    def set(self, name: str, rate_bytes_per_s: float | None, cpus: float | None) -> None:
        """Change a device while it runs; None leaves as it is. Raises LabError for more cores than there are."""
        if cpus is not None:
            require_cores(name, cpus)
        with state.locked():
            stands = self._stands()
            old = stands.of(name)
            device = old.device._replace(
                rate_bytes_per_s=old.device.rate_bytes_per_s if rate_bytes_per_s is None else rate_bytes_per_s,
                cpus=old.device.cpus if cpus is None else cpus,
            )
            self._pin(self._applied(stands, old._replace(device=device)))

    def board(self, name: str) -> LabDevice:
        """A device. Raises LabError where there is none of that name."""
        stands = self._stands()
        return self._board(stands, stands.of(name))

    def do(self, name: str, *verbs: Callable[[LabDevice], None]) -> None:
        """Stop, kill or cut a device, or restore it: verbs are methods of ``LabDevice``."""
        with state.locked():
            board = self.board(name)
            for verb in verbs:
                verb(board)
            self._pin(self._stands())

    def _stands(self) -> LabState:
        stands = state.load(self._where)
        if stands is None:
            raise LabError(f'no lab "{self._where.lab}" stands; `planner lab up SPEC.toml` builds it')
        return stands

    def _founded(self) -> LabState:
        """The folder of a lab with a network of its own and no device; what a crash has left is removed before."""
        self._swept()
        self._where.folder.mkdir(parents=True, mode=0o700)
        sshd.ensure_key(self._where.client)
        subnet = int(network.free_network(NETWORKS).network_address) >> 8 & 0xFF
        return self._kept(LabState(subnet, ()))

    def _ensure_switch(self, stands: LabState) -> None:
        network.add_switch(self._where.switch)
        if not network.has_port(self._where.switch, CONTROLLER_PORT):
            network.unplug_here(self._where.interface)
            address = stands.address(state.CONTROLLER)
            network.plug_here(self._where.switch, CONTROLLER_PORT, self._where.interface, address)

    def _without_others(self, stands: LabState, spec: Spec) -> LabState:
        names = {device.name for device in spec.devices}
        for other in [each for each in stands.devices if each.device.name not in names]:
            self._board(stands, other).remove()
            stands = self._kept(stands.without(other.device.name))
        return stands

    def _built(self, stands: LabState, wanted: Standing) -> LabState:
        old = stands.find(wanted.device.name)
        board = self._board(stands, wanted)
        if old and _sensors(old.device) != _sensors(wanted.device):
            board.forget_sensors()
        if old is None or not board.cabled():
            stands = self._kept(stands.with_device((old or wanted)._replace(shaped=False)))
        board.build()
        stands = self._applied(stands, wanted)
        board.start()
        return stands

    def _applied(self, stands: LabState, wanted: Standing) -> LabState:
        """What a device may use, with a cable left alone whose rates are right."""
        old = stands.of(wanted.device.name)
        board = self._board(stands, wanted)
        board.limit(wanted.device)
        if not old.shaped or old.rates != wanted.rates:
            stands = self._kept(stands.with_device(wanted._replace(shaped=False)))
            board.shape(wanted.device, wanted.rates_to)
        return self._kept(stands.with_device(wanted._replace(shaped=True)))

    def _swept(self) -> bool:
        """Remove whatever has the lab's name; whether there was anything."""
        switch = self._where.switch
        spaces = [space for space in network.spaces() if space == switch or space.startswith(f"{switch}-")]
        found = bool(spaces) or self._where.folder.exists() or self._groups.exists(switch)
        found = found or network.has_interface(self._where.interface)
        with ExitStack() as removals:  # the last first, and each of them whatever becomes of the others
            removals.callback(state.remove, self._where)
            for space in spaces:
                removals.callback(network.remove_space, space)
            removals.callback(network.unplug_here, self._where.interface)
            removals.callback(self._groups.remove, switch)
        return found

    def _boards(self, stands: LabState) -> list[LabDevice]:
        return [self._board(stands, standing) for standing in stands.devices]

    def _board(self, stands: LabState, standing: Standing) -> LabDevice:
        address = stands.address(standing.host)
        return LabDevice(self._where, self._groups, standing.device.name, standing.host, address)

    def _pin(self, stands: LabState) -> None:
        """Every device to its core, or all of them to any."""
        machine = os.sched_getaffinity(0)
        place = cpu_pinning.packed({each.device.name: each.device.cpus for each in stands.devices}, sorted(machine))
        for board in self._boards(stands):
            board.pin({place[board.name]} if place else machine)

    def _kept(self, stands: LabState) -> LabState:
        state.save(self._where, stands)
        return stands


def require_cores(name: str, cpus: float) -> None:
    """Raises LabError where a device is to have more cores than this machine."""
    most = usable_cores()
    if cpus > most:
        raise LabError(f"{name}: {cpus:g} cpus are more than this machine has; write {most:g} or less")


def differs(old: Standing | None, wanted: Standing) -> bool:
    """Whether what was measured of a device before no longer holds."""
    return old is None or not old.shaped or (old.device.cpus, old.rates) != (wanted.device.cpus, wanted.rates)


def _require_shapers(spec: Spec) -> None:
    programs.require_shaper(["sch_tbf"], shaping.one_rate("lo", 1e6))
    if any(device.delay_s for device in spec.devices):
        remedy = ', or remove "delay" from the spec'
        programs.require_shaper(["sch_tbf", "sch_netem"], shaping.one_rate("lo", 1e6, delay_s=0.01), remedy)
    if spec.links:
        programs.require_shaper(["sch_htb", "cls_u32"], shaping.rates_by_target("lo", 1e6, {"127.0.0.2": 1e5}))


def _wanted(stands: LabState, spec: Spec) -> list[Standing]:
    """The devices of a spec, each at the host number it has or a free one."""
    hosts = {each.device.name: each.host for each in stands.devices}
    for device in spec.devices:
        hosts.setdefault(device.name, state.free_host(hosts.values()))
    addresses = {name: stands.address(host) for name, host in hosts.items()}
    rates: dict[str, dict[str, float]] = {name: {} for name in hosts}
    for link in spec.links:
        rates[link.source][addresses[link.target]] = link.rate_bytes_per_s
    return [Standing(device, hosts[device.name], rates[device.name]) for device in spec.devices]


def _sensors(device: DeviceSpec) -> tuple[str, bool, bool]:
    """What a running meter cannot change: which files it writes, and which it reads."""
    return device.kind, device.sensors, device.memory_bytes is None
