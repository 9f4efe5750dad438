"""The devices of chaos runs are those of a lab, hurt, healed and searched for what is left."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.lab import cgroups, sshd, state
from benchmarks.lab.device import LabDevice
from benchmarks.lab.lab import Lab
from benchmarks.lab.spec import parse_spec
from profilers.cpu_quota import usable_cores
from tests.chaos.scenario import DEVICES

#: A job that needs more is ended by the kernel.
MEMORY = "1200mb"
#: Of a disk that a fault fills: it has room for agents and a few checkpoints.
DISK = "size=4m"
#: Listening sockets in /proc/net/tcp.
_LISTENS = "0A"


class Devices:
    """A lab of three devices. All verbs but ``stop`` and ``kill`` are of a whole device."""

    def __init__(self, lab: str) -> None:
        self._lab, self._names = Lab(lab), state.LabNames(lab)
        self._groups = cgroups.mounted(Path("/proc/self/mountinfo").read_text())

    def up(self, folder: Path) -> None:
        entries = (
            f'[devices.{name}]\ncpus = {usable_cores()}\nrate = "1000mbit"\nmemory = "{MEMORY}"\n' for name in DEVICES
        )
        spec = parse_spec("\n".join(entries), folder / "lab.toml")
        self._lab.up(spec, folder / "lab-fleet.toml", lambda *_: None)

    def down(self) -> None:
        self._lab.down()

    def entry(self, name: str) -> dict[str, object]:
        """What the fleet file says of a device, without its environment."""
        login = {"address": f"root@{self._lab.device(name).address}", "key": str(self._names.client)}
        return {**login, "python": sys.executable}

    @property
    def ssh_config(self) -> Path:
        return sshd.config_of(self._names.folder)

    def cut(self, name: str) -> None:
        self._lab.do(name, LabDevice.cut)

    def switch_off(self, name: str) -> None:
        self._lab.do(name, LabDevice.kill)

    def heal(self, name: str) -> None:
        """Switched on, its cable plugged in, nothing stopped, and sshd at work."""
        self._lab.do(name, LabDevice.start, LabDevice.wait)

    def restart_sshd(self, name: str) -> None:
        """End sshd with all its sessions, as some packages do, and start it again."""
        while serving := [each for each in self._groups.processes(self._names.group(name)) if _serves(each, "sshd")]:
            for process in serving:
                signal_one(process, signal.SIGKILL)
        self.heal(name)

    def running(self, name: str) -> dict[int, str]:
        """Command lines of what runs on a device, by process id, without sshd and iperf3."""
        everything = self._groups.processes(self._names.group(name))
        return {process: _command_line(process) for process in everything if not _serves(process)}

    def ports(self, name: str) -> set[int]:
        """On which somebody listens on a device."""
        show = ["ip", "netns", "exec", self._names.namespace(name), "cat", "/proc/net/tcp", "/proc/net/tcp6"]
        lines = subprocess.run(show, capture_output=True, text=True, check=True).stdout.splitlines()
        rows = [line.split() for line in lines if ":" in line]
        return {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == _LISTENS}


@contextmanager
def lab(name: str, folder: Path) -> Iterator[Devices]:
    """The devices, as long as the block lasts."""
    devices = Devices(name)
    try:
        devices.up(folder)
        yield devices
    finally:
        devices.down()


@contextmanager
def small_disks(paths: Iterable[Path]) -> Iterator[None]:
    """File systems of their own at these folders, which are made."""
    mounted = []
    try:
        for path in paths:
            path.mkdir(parents=True)
            subprocess.run(["mount", "-t", "tmpfs", "-o", DISK, "tmpfs", str(path)], check=True)
            mounted.append(path)
        yield
    finally:
        for path in mounted:
            subprocess.run(["umount", "--lazy", str(path)], check=True)


def fill(disk: Path) -> None:
    """Leave no byte of a small disk free."""
    with (disk / "filler").open("wb", buffering=0) as filler, suppress(OSError):
        while True:
            filler.write(bytes(4096))


def signal_one(process: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, number)


def _serves(process: int, *programs: str) -> bool:
    """Whether it is one of a device's programs; those of the lab if none is named."""
    try:
        return Path(f"/proc/{process}/comm").read_text().startswith(programs or ("sshd", "iperf3"))
    except OSError:  # it has ended
        return not programs


def _command_line(process: int) -> str:
    try:
        status = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        words = Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ")
        return f"{process} ({status}) {words.decode(errors='replace')[:80]}"
    except OSError:
        return f"{process} (just ended)"
