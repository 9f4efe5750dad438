"""A lab device is a namespace with a cable, a control group, sshd and iperf3."""

import shutil
import signal
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from . import network, sshd, traffic_control
from .cgroups import Cgroups, pin
from .errors import LabError
from .programs import find_program, last_log_line, start_inside
from .spec import DeviceSpec
from .state import LabNames

START_LIMIT_S = 15.0
_PAUSE_S = 0.05


class Condition(NamedTuple):
    """The present condition of a device.

    state: up, or its faults: stopped, killed, cut, missing.
    sshd: whether it runs.
    """

    state: str
    sshd: bool


class LabDevice:
    """A device of a lab. Each method may be repeated; all need ``build`` once."""

    def __init__(
        self, names: LabNames, groups: Cgroups, name: str, host: int, address: str, *, quota_visible: bool = True
    ) -> None:
        self.name, self.address, self._quota_visible = name, address, quota_visible
        self._groups, self._switch, self._port = groups, names.switch, f"port{host}"
        self._namespace, self._folder, self._client = names.namespace(name), names.of(name), names.client
        self._group, self._tree = names.group(name), names.tree(name)

    def cabled(self) -> bool:
        """Whether its namespace exists and has both ends of its cable."""
        return self._namespace in network.namespaces() and network.has_port(self._switch, self._port)

    def build(self) -> None:
        """Create its namespace, cable and control group where they are missing."""
        cabled = self.cabled()
        if self._namespace not in network.namespaces():
            self._groups.end(self._group)  # processes in a namespace that has lost its name
        if not cabled:
            network.unplug(self._switch, self._port)
        network.add_namespace(self._namespace)
        self._groups.make(self._group)
        self._tree.mkdir(parents=True, exist_ok=True)
        if not (self._tree / "proc").exists():
            (self._tree / "proc").symlink_to("/proc")
        if not cabled:
            network.plug(self._switch, self._port, self._namespace, self.address)

    def shape(self, device: DeviceSpec, targets: Mapping[str, float]) -> None:
        """Set the device's rate, and its rates to single addresses."""
        traffic_control.shape(
            self._switch, self._port, self._namespace, device.rate_bytes_per_s, targets, device.delay_s
        )

    def limit(self, device: DeviceSpec) -> None:
        """Limit the device's processors and memory."""
        self._groups.set_cpus(self._group, device.cpus)
        self._groups.set_memory(self._group, device.memory_bytes)

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
                start_inside(
                    self._namespace, self._groups.procs_files(self._group), self._folder, program, command,
                    sees_cgroups=self._quota_visible,
                )  # fmt: skip

    def wait(self) -> None:
        """Wait until sshd answers and iperf3 runs.

        Raises LabError with the last output of a program that does not start.
        """
        end_s = time.monotonic() + START_LIMIT_S
        started: dict[str, Callable[[], bool]] = {
            "sshd": lambda: sshd.answers(self.address, START_LIMIT_S),
            "iperf3": lambda: self._runs("iperf3"),
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
        """Switch it off: disconnect the cable, then SIGKILL every process."""
        if self.cabled():
            self.cut()  # first, or the kernel would close its connections properly
        self._groups.end(self._group)

    def cut(self) -> None:
        network.connect(self._switch, self._port, up=False)

    def remove(self) -> None:
        self._groups.remove(self._group)
        network.unplug(self._switch, self._port)
        network.remove_namespace(self._namespace)
        shutil.rmtree(self._folder, ignore_errors=True)

    def condition(self) -> Condition:
        if self._namespace not in network.namespaces():
            return Condition("missing", False)
        processes = self._groups.processes(self._group)
        if not processes:
            return Condition("killed", False)
        faults = ["stopped"] if all(map(_stopped, processes)) else []
        faults += [] if self._port in network.connected(self._switch) else ["cut"]
        return Condition(", ".join(faults) or "up", self._runs("sshd"))

    def _runs(self, program: str) -> bool:
        try:
            return int(self._pid_file(program).read_text().strip("\0\n ")) in self._groups.processes(self._group)
        except (FileNotFoundError, ValueError):
            return False

    def _pid_file(self, program: str) -> Path:
        return self._folder / f"{program}.pid"


def _stopped(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    except OSError:  # it has ended
        return True
