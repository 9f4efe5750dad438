"""A lab device is a namespace with a cable, a control group, sshd, iperf3, emulated sensors."""

import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import planner
from planner import json_records
from planner.errors import LabError
from planner.lab import device_files, network, sshd, traffic_control
from planner.lab.cgroups import Cgroups, pin
from planner.lab.programs import find_program, last_log_line, start_inside
from planner.lab.sensor_emulator import Config
from planner.lab.spec import DeviceSpec
from planner.lab.state import LabNames
from profilers.file_tree import FileTree, Unavailable
from profilers.sensors import ina3221

START_LIMIT_S = 15.0
_PAUSE_S = 0.05


class Condition(NamedTuple):
    """The present condition of a device.

    state: up, or its faults: stopped, killed, cut, missing.
    sshd: whether it runs.
    power_w: emulated watts.
    """

    state: str
    sshd: bool
    power_w: float | None


class LabDevice:
    """A device of a lab. Each method may be repeated; all need ``build`` once."""

    def __init__(
        self, names: LabNames, groups: Cgroups, name: str, host: int, address: str, *, quota_visible: bool = True
    ) -> None:
        self.name, self.address, self._quota_visible = name, address, quota_visible
        self._groups, self._switch, self._port = groups, names.switch, f"port{host}"
        self._namespace, self._folder, self._client = names.namespace(name), names.of(name), names.client
        self._group, self._emulator_group = names.group(name), names.emulator_group(name)
        self._tree, self._config = names.tree(name), self._folder / "sensor_emulator.json"

    def cabled(self) -> bool:
        """Whether its namespace exists and has both ends of its cable."""
        return self._namespace in network.namespaces() and network.has_port(self._switch, self._port)

    def build(self) -> None:
        """Create its namespace, cable and control groups where they are missing."""
        cabled = self.cabled()
        if self._namespace not in network.namespaces():
            self._end()  # processes in a namespace that has lost its name
        if not cabled:
            network.unplug(self._switch, self._port)
        network.add_namespace(self._namespace)
        for group in (self._group, self._emulator_group):
            self._groups.make(group)
        self._folder.mkdir(parents=True, exist_ok=True)
        if not cabled:
            network.plug(self._switch, self._port, self._namespace, self.address)

    def shape(self, device: DeviceSpec, targets: Mapping[str, float]) -> None:
        """Set the device's rate, and its rates to single addresses."""
        traffic_control.shape(
            self._switch, self._port, self._namespace, device.rate_bytes_per_s, targets, device.delay_s
        )

    def limit(self, device: DeviceSpec) -> None:
        """Limit the device's processors and memory, and configure its sensor emulator."""
        self._groups.set_cpus(self._group, device.cpus)
        self._groups.set_memory(self._group, device.memory_bytes)
        limit_bytes = device.memory_bytes
        memory = None if limit_bytes is None else self._groups.memory(self._group, limit_bytes)
        usage, seed, tree = self._groups.usage(self._group), sum(self.name.encode()), str(self._tree)
        power, terms = device.power, device.terms
        config = Config(tree, device.kind, usage, network.PORT, device.cpus, power, seed, memory, terms)
        json_records.save(config, self._config)

    def forget_sensors(self) -> None:
        """Stop the sensor emulator and remove its files, so that other sensors can replace them."""
        self._groups.end(self._emulator_group)
        shutil.rmtree(self._tree, ignore_errors=True)

    def start(self) -> None:
        """Undo ``stop``, ``kill`` and ``cut``: resume or start processes, plug the cable in."""
        self._groups.signal(self._group, signal.SIGCONT)
        network.connect(self._switch, self._port, up=True)
        serve = sshd.configure(self._folder, self._client, self.address)
        listen = [str(find_program("iperf3")), "-s", "-B", self.address, "--pidfile", str(self._pid_file("iperf3"))]
        for program, command in (("sshd", serve), ("iperf3", listen)):
            if not self._runs(program):
                # Its number may be another process's by now, and iperf3 then refuses to start.
                self._pid_file(program).unlink(missing_ok=True)
                self._start(self._group, program, command, sees_cgroups=self._quota_visible)
        if not self._groups.processes(self._emulator_group):
            device_files.hide(str(self._tree))
            code = {**os.environ, "PYTHONPATH": str(Path(planner.__file__).parents[1])}
            emulate = [sys.executable, "-m", "planner.lab.sensor_emulator", str(self._config)]
            self._start(self._emulator_group, "sensor_emulator", emulate, code)

    def wait(self) -> None:
        """Wait until sshd answers, iperf3 runs and the sensor emulator has written.

        Raises LabError with the last output of a program that does not start.
        """
        end_s = time.monotonic() + START_LIMIT_S
        started: dict[str, Callable[[], bool]] = {
            "sshd": lambda: sshd.answers(self.address, START_LIMIT_S),
            "iperf3": lambda: self._runs("iperf3"),
            "sensor_emulator": self._emulator_runs,
        }
        for program, has_started in started.items():
            while not has_started():
                if time.monotonic() > end_s:
                    output = last_log_line(self._folder, program)
                    raise LabError(f"{self.name}: its {program} does not run at {self.address}: {output}")
                time.sleep(_PAUSE_S)

    def pin(self, cores: Collection[int]) -> None:
        for process in self._groups.processes(self._group):
            pin(process, cores)

    def known_host(self) -> str:
        return sshd.known_host(self._folder, self.address)

    def stop(self) -> None:
        """SIGSTOP to every process of the device."""
        self._groups.signal(self._group, signal.SIGSTOP)

    def kill(self) -> None:
        """Emulate switching off: disconnect the cable, then SIGKILL every process.

        Its sensors then have no readings.
        """
        if self.cabled():
            self.cut()  # first, or the kernel would close its connections properly
        self._end()

    def cut(self) -> None:
        network.connect(self._switch, self._port, up=False)

    def remove(self) -> None:
        for group in (self._group, self._emulator_group):
            self._groups.remove(group)
        network.unplug(self._switch, self._port)
        network.remove_namespace(self._namespace)
        shutil.rmtree(self._folder, ignore_errors=True)

    def condition(self) -> Condition:
        if self._namespace not in network.namespaces():
            return Condition("missing", False, None)
        processes = self._groups.processes(self._group)
        if not processes:
            return Condition("killed", False, self._power_w())
        faults = ["stopped"] if all(map(_stopped, processes)) else []
        faults += [] if self._port in network.connected(self._switch) else ["cut"]
        return Condition(", ".join(faults) or "up", self._runs("sshd"), self._power_w())

    def _end(self) -> None:
        self._groups.end(self._group)
        self._groups.end(self._emulator_group, gently=True)
        device_files.hide(str(self._tree))  # for a sensor emulator that was killed

    def _start(
        self, group: str, program: str, command: Sequence[str], environment: Mapping[str, str] | None = None,
        *, sees_cgroups: bool = True,
    ) -> None:  # fmt: skip
        procs_files = self._groups.procs_files(group)
        start_inside(
            self._namespace, procs_files, self._folder, program, command, environment, sees_cgroups=sees_cgroups
        )

    def _runs(self, program: str) -> bool:
        try:
            return int(self._pid_file(program).read_text().strip("\0\n ")) in self._groups.processes(self._group)
        except (FileNotFoundError, ValueError):
            return False

    def _pid_file(self, program: str) -> Path:
        return self._folder / f"{program}.pid"

    def _emulator_runs(self) -> bool:
        return bool(self._groups.processes(self._emulator_group)) and (self._tree / "proc/stat").exists()

    def _power_w(self) -> float | None:
        """Its watts as the product's sensor code reads them."""
        if not self._emulator_runs():
            return None
        try:
            totals = ina3221.discover(FileTree(str(self._tree))).sensors
            return totals[0].read() if totals else None
        except Unavailable:
            return None


def _stopped(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    except OSError:  # it has ended
        return True
