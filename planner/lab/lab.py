"""A lab as a whole: build it, look at it, change it, remove it."""

import ipaddress
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from planner.errors import LabError
from planner.lab import cgroups, fleetwriter, network, programs, sshd, state
from planner.lab.board import Board, Condition
from planner.lab.spec import DeviceSpec, Spec
from planner.lab.state import LabState, Standing

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

    def up(self, spec: Spec, fleet: Path, on_progress: OnProgress) -> None:
        """Build what is missing, change what differs, remove what the spec does not have, write the fleet file."""
        fleetwriter.require_ours(fleet)
        programs.require_shaper("tbf", "rate", "1mbit", "burst", "3200", "latency", "20ms")
        if any(device.delay_s for device in spec.devices):
            programs.require_shaper("netem", "delay", "1ms")
        with state.locked():
            stands = self._without_others(state.load(self._where) or self._founded(), spec)
            self._ensure_switch(stands)
            for wanted in _wanted(stands, spec):
                on_progress(wanted.device.name, "is built", None)
                stands = self._built(stands, wanted)
            for board in self._boards(stands):
                on_progress(board.name, "starts", None)
                board.wait()
            sshd.write_client(self._where.folder, map(Board.known_host, self._boards(stands)))
            fleet.write_text(fleetwriter.fleet_text(self._where, stands, spec.devices), encoding="utf-8")

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
        """Change a device while it runs; None leaves as it is."""
        with state.locked():
            stands = self._stands()
            old = stands.of(name)
            device = old.device._replace(
                rate_bytes_per_s=old.device.rate_bytes_per_s if rate_bytes_per_s is None else rate_bytes_per_s,
                cpus=old.device.cpus if cpus is None else cpus,
            )
            self._applied(stands, old._replace(device=device))

    def board(self, name: str) -> Board:
        """A device, to stop, kill or cut it."""
        stands = self._stands()
        return self._board(stands, stands.of(name))

    def restore(self, name: str) -> None:
        """Undo what was done to a device, and wait until it answers."""
        board = self.board(name)
        board.start(self._stands().of(name).device.sensors)
        board.wait()

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
        if self._where.switch not in network.spaces():
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
        new_cable = board.build()
        stands = self._applied(stands, wanted, new_cable)
        board.start(wanted.device.sensors)
        return stands

    def _applied(self, stands: LabState, wanted: Standing, new_cable: bool = False) -> LabState:
        """What a device may use, with a cable left alone whose rates are right."""
        old = stands.find(wanted.device.name)
        board = self._board(stands, wanted)
        board.limit(wanted.device)
        if new_cable or old is None or _rates(old) != _rates(wanted):
            board.shape(wanted.device, wanted.rates_to)
        return self._kept(stands.with_device(wanted))

    def _swept(self) -> bool:
        """Remove whatever has the lab's name; whether there was anything."""
        switch = self._where.switch
        spaces = [space for space in network.spaces() if space == switch or space.startswith(f"{switch}-")]
        found = bool(spaces) or self._where.folder.exists()
        self._groups.remove(switch)
        network.unplug_here(self._where.interface)
        for space in spaces:
            network.remove_space(space)
        state.remove(self._where)
        return found

    def _boards(self, stands: LabState) -> list[Board]:
        return [self._board(stands, standing) for standing in stands.devices]

    def _board(self, stands: LabState, standing: Standing) -> Board:
        address = stands.address(standing.host)
        return Board(self._where, self._groups, standing.device.name, standing.host, address)

    def _kept(self, stands: LabState) -> LabState:
        state.save(self._where, stands)
        return stands


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


def _sensors(device: DeviceSpec) -> tuple[str, bool]:
    return device.kind, device.sensors


def _rates(standing: Standing) -> tuple[float, float, dict[str, float]]:
    return standing.device.rate_bytes_per_s, standing.device.delay_s, standing.rates_to
