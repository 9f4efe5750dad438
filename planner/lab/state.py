"""What stands of a lab, on disk: where its files are, and what was applied to each device."""

import fcntl
import json
import os
import re
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from planner.errors import LabError, suggest
from planner.lab.power import PhysicalPower
from planner.lab.spec import DeviceSpec

ROOT = Path("/run/planner-lab")
#: The controller's host number; devices have 1, 2 and so on.
CONTROLLER = 254
#: With "plab-" before it, an interface may have 15 characters; no "-", at which a device's name begins.
_NAME = re.compile(r"[a-z0-9]{1,10}")


class Standing(NamedTuple):
    """A device as it was built or last changed.

    rates_to: bytes/s to single addresses; shaped: whether its cable has these rates, or a command ended before.
    """

    device: DeviceSpec
    host: int
    rates_to: dict[str, float]
    shaped: bool = True

    @property
    def rates(self) -> tuple[float, float, dict[str, float]]:
        """All that shapes its cable."""
        return self.device.rate_bytes_per_s, self.device.delay_s, self.rates_to


class LabState(NamedTuple):
    """A lab whose network is 10.77.``subnet``.0/24."""

    subnet: int
    devices: tuple[Standing, ...]

    def address(self, host: int) -> str:
        """Where a host is."""
        return f"10.77.{self.subnet}.{host}"

    def find(self, name: str) -> Standing | None:
        """The device of that name, if it stands."""
        return next((each for each in self.devices if each.device.name == name), None)

    def of(self, name: str) -> Standing:
        """The device of that name. Raises LabError with the names there are."""
        found = self.find(name)
        if found is None:
            raise LabError(f'no device "{name}"; {suggest(name, [each.device.name for each in self.devices])}')
        return found

    def with_device(self, standing: Standing) -> "LabState":
        """With that device, in its old place where it had one."""
        known = self.find(standing.device.name)
        devices = tuple(standing if each is known else each for each in self.devices)
        return self._replace(devices=devices if known else (*devices, standing))

    def without(self, name: str) -> "LabState":
        """Without the device of that name."""
        return self._replace(devices=tuple(each for each in self.devices if each.device.name != name))


class Names(NamedTuple):
    """Where everything of a lab is, by the lab's name, so that it is found without its state."""

    lab: str

    @property
    def switch(self) -> str:
        """The namespace of the switch, the prefix of all others', and the outermost control group."""
        return f"planner-lab-{self.lab}"

    @property
    def interface(self) -> str:
        """This machine's own port."""
        return f"plab-{self.lab}"

    @property
    def folder(self) -> Path:
        """Keys, and a folder for each device."""
        return ROOT / self.lab

    @property
    def state(self) -> Path:
        """What ``save`` writes."""
        return self.folder / "state.json"

    @property
    def client(self) -> Path:
        """The operator's key to all devices."""
        return self.folder / "client"

    def space(self, device: str) -> str:
        """The device's namespace."""
        return f"{self.switch}-{device}"

    def group(self, device: str) -> str:
        """The control group of the device."""
        return f"{self.switch}/{device}"

    def meter_group(self, device: str) -> str:
        """The control group of what is not part of the device; no device's name holds a dot."""
        return f"{self.switch}/{device}.meter"

    def of(self, device: str) -> Path:
        """The device's folder."""
        return self.folder / "devices" / device

    def tree(self, device: str) -> Path:
        """The device's PLANNER_SYSFS_ROOT."""
        return self.of(device) / "sysfs"


def free_host(taken: Collection[int]) -> int:
    """The first host number that is not taken."""
    return next(host for host in range(1, CONTROLLER) if host not in taken)


def port(host: int) -> str:
    """The switch's port of a host."""
    return f"port{host}"


def names(lab: str) -> Names:
    """Raises LabError for a name that interfaces cannot have."""
    if not _NAME.fullmatch(lab):
        raise LabError(f'"{lab}" is no name for a lab; use 1 to 10 small letters and digits')
    return Names(lab)


def load(where: Names) -> LabState | None:
    """What stands; None where nothing does. Raises LabError where the file cannot be read."""
    try:
        found = json.loads(where.state.read_text(encoding="utf-8"))
        devices = (Standing(**{**entry, "device": _device(entry["device"])}) for entry in found["devices"])
        return LabState(found["subnet"], tuple(devices))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise LabError(f"{where.state}: damaged ({error}); `planner lab down --name {where.lab}`") from error


def save(where: Names, state: LabState) -> None:
    """Replace what ``load`` reads."""
    devices = [{**each._asdict(), "device": _plain(each.device)} for each in state.devices]
    text = json.dumps({"subnet": state.subnet, "devices": devices}, indent=1)
    fresh = where.state.with_suffix(".new")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(where.state)


def remove(where: Names) -> None:
    """Remove the lab's folder, and that of all labs with the last of them."""
    shutil.rmtree(where.folder, ignore_errors=True)
    with suppress(OSError):
        ROOT.rmdir()


@contextmanager
def locked() -> Iterator[None]:
    """One command that builds, changes or removes labs at a time."""
    handle = os.open(ROOT.parent, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _plain(device: DeviceSpec) -> dict[str, object]:
    return {**device._asdict(), "power": device.power and device.power._asdict()}


def _device(entry: dict[str, Any]) -> DeviceSpec:
    return DeviceSpec(**{**entry, "power": PhysicalPower(**entry["power"]) if entry["power"] else None})
