"""The state of a lab on disk records what was applied to each device."""

import fcntl
import os
import re
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from planner import json_records
from planner.errors import suggest

from .errors import LabError
from .spec import DeviceSpec

ROOT = Path("/run/planner-lab")
#: The controller's host number; devices have 1, 2 and so on.
CONTROLLER = 254
#: An interface "plab-NAME" may have 15 characters; a "-" would separate the name of a device.
_NAME = re.compile(r"[a-z0-9]{1,10}")


class AppliedDevice(NamedTuple):
    """A device as it was built or last changed.

    rates_to: bytes/s to single addresses
    shaped: whether its cable has these rates; False while a command changes them
    """

    device: DeviceSpec
    host: int
    rates_to: dict[str, float]
    shaped: bool = True

    @property
    def rates(self) -> tuple[float, float, dict[str, float]]:
        return self.device.rate_bytes_per_s, self.device.delay_s, self.rates_to


class LabState(NamedTuple):
    """A lab whose network is 10.77.``subnet``.0/24."""

    subnet: int
    devices: tuple[AppliedDevice, ...]

    def address(self, host: int) -> str:
        return f"10.77.{self.subnet}.{host}"

    def find(self, name: str) -> AppliedDevice | None:
        """The device of that name, or None."""
        return next((each for each in self.devices if each.device.name == name), None)

    def of(self, name: str) -> AppliedDevice:
        found = self.find(name)
        if found is None:
            raise LabError(f'no device "{name}"; {suggest(name, [each.device.name for each in self.devices])}')
        return found

    def with_device(self, applied: AppliedDevice) -> "LabState":
        by_name = {each.device.name: each for each in self.devices} | {applied.device.name: applied}
        return self._replace(devices=tuple(by_name.values()))

    def without(self, name: str) -> "LabState":
        return self._replace(devices=tuple(each for each in self.devices if each.device.name != name))


class LabNames:
    """Names and paths of all parts of a lab, derived from its name alone.

    switch: the switch's namespace and the outermost control group; prefix of all other names.
    interface: the lab's interface of this machine.
    client: the operator's key for all devices.
    Raises LabError for a name that interfaces cannot have.
    """

    def __init__(self, lab: str) -> None:
        if not _NAME.fullmatch(lab):
            raise LabError(f'"{lab}" is no name for a lab; use 1 to 10 small letters and digits')
        self.lab = lab
        self.switch, self.interface = f"planner-lab-{lab}", f"plab-{lab}"
        self.folder = ROOT / lab
        self.state, self.client = self.folder / "state.json", self.folder / "client"

    def namespace(self, device: str) -> str:
        return f"{self.switch}-{device}"

    def group(self, device: str) -> str:
        return f"{self.switch}/{device}"

    def of(self, device: str) -> Path:
        return self.folder / "devices" / device

    def tree(self, device: str) -> Path:
        """The device's PLANNER_SYSFS_ROOT: /proc, and no /sys with the machine's sensors."""
        return self.of(device) / "sysfs"


def free_host(taken: Collection[int]) -> int:
    """The lowest free host number."""
    return next(host for host in range(1, CONTROLLER) if host not in taken)


def load(names: LabNames) -> LabState | None:
    """The state of a lab, or None. Raises RecordError where the file cannot be read."""
    if not names.state.exists():
        return None
    return json_records.load(LabState, names.state, f"`python -m benchmarks.lab down --name {names.lab}`")


def save(names: LabNames, state: LabState) -> LabState:
    json_records.save(state, names.state)
    return state


def remove(names: LabNames) -> None:
    """Remove the lab's folder, and with the last lab the folder of all labs."""
    shutil.rmtree(names.folder, ignore_errors=True)
    with suppress(OSError):
        ROOT.rmdir()


@contextmanager
def locked() -> Iterator[None]:
    """Let only one command at a time build, change or remove labs."""
    handle = os.open(ROOT.parent, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
