"""A fleet consists of devices, as the operator describes them in a fleet file."""

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from planner.errors import FleetError, suggest

_ADDRESS = re.compile(r"(?:(?P<user>\S+)@)?(?P<host>\[[^\]]+\]|[^@:\s\[\]]+)(?::(?P<port>\d{1,5}))?")


class Address(NamedTuple):
    """The SSH address of a device; ``host`` may be an alias of ~/.ssh/config."""

    user: str | None
    host: str
    port: int | None


class SshLogin(NamedTuple):
    """How a device is reached; what is None is left to OpenSSH's configuration.

    ssh_config: replaces ~/.ssh/config.
    program: whether the ssh program logs in, and not paramiko.
    """

    host: str
    port: int | None = None
    user: str | None = None
    key: Path | None = None
    jump: str | None = None
    ssh_config: Path | None = None
    program: bool = False


class Interpreter(NamedTuple):
    """The Python of a device, the words before it, and variables of its environment."""

    python: str = "python3"
    prefix: tuple[str, ...] = ()
    environment: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class Device:
    """One machine of the fleet.

    ssh: None for this machine.
    slowdown: above 1 it emulates a device that many times slower.
    rate_bytes_per_s: rate of its link, where the operator knows it.
    meters: addresses of external meters to read (profilers.sensors.external_meters).
    power_model: a fitted model of its watts.
    data: folder of a job's data set that is on it already.
    computes_on: "cpu", "cuda" or "mps"; None for the best that its framework has.
    """

    name: str
    ssh: SshLogin | None = None
    interpreter: Interpreter = Interpreter()
    kind: str = "pc"
    data_address: str | None = None
    data_interface: str | None = None
    idle_watts: float | None = None
    max_watts: float | None = None
    meters: tuple[str, ...] = ()
    power_model: Path | None = None
    rate_bytes_per_s: float | None = None
    slowdown: float = 1.0
    data: str | None = None
    computes_on: str | None = None

    @property
    def local(self) -> bool:
        """Whether commands run on this machine, without SSH."""
        return self.ssh is None

    @property
    def emulated(self) -> bool:
        return self.slowdown > 1.0


@dataclass(frozen=True)
class Fleet:
    """Devices in the order of their file.

    trusted_network: whether the operator has declared that nobody else reads along among them.
    """

    devices: tuple[Device, ...]
    path: Path
    trusted_network: bool = False

    def device(self, name: str) -> Device:
        """The device of that name. Raises FleetError with the names there are."""
        for device in self.devices:
            if device.name == name:
                return device
        names = [device.name for device in self.devices]
        raise FleetError(f'{self.path}: no device "{name}"; {suggest(name, names)}')


def require_trust(fleet: Fleet, names: Iterable[str], what: str, allowed: bool) -> None:
    """Raises FleetError where data would leave this machine without encryption and nobody said so.

    what: an option whose exchange is not encrypted. allowed: whether --allow-plaintext was given.
    """
    if allowed or fleet.trusted_network or all(fleet.device(name).local for name in names):
        return
    raise FleetError(
        f"{what}: torch.distributed has no encryption and no passwords, so whoever is on the network can read and "
        f"change what is sent; add --allow-plaintext, or trusted_network = true at the top of {fleet.path}"
    )


def example() -> str:
    """The commented fleet file that ``planner init`` writes."""
    return resources.files("planner.fleet").joinpath("example.toml").read_text(encoding="utf-8")


def device_at(address: str, ssh_config: Path | None = None) -> Device:
    """A device that is in no fleet file, from its address. Raises ValueError."""
    user, host, port = parse_address(address)
    return Device(name=address, ssh=SshLogin(host, port, user, ssh_config=ssh_config))


def parse_address(text: str) -> Address:
    """``[user@]host[:port]``, an IPv6 address in brackets if a port follows. Raises ValueError.

    ``ssh://`` may stand before it, as before what ssh takes.
    """
    text = text.removeprefix("ssh://").removesuffix("/")
    user, _, host = text.rpartition("@")
    bare = f"{user}@[{host}]" if user else f"[{host}]"
    match = _ADDRESS.fullmatch(bare if _is_ipv6(host) else text)
    if match is None or match["host"].startswith("-") or (match["user"] or "").startswith("-"):
        raise ValueError(f'"{text}" is not an address; write [user@]host[:port], or "local"')
    port = int(match["port"]) if match["port"] else None
    if port is not None and not 1 <= port <= 65535:
        raise ValueError(f'port {port} of "{text}" is not between 1 and 65535')
    return Address(match["user"], match["host"].strip("[]"), port)


def _is_ipv6(text: str) -> bool:
    """Whether a text is an IPv6 address, which may name its interface (fe80::1%eth0)."""
    try:
        return bool(ipaddress.IPv6Address(text))
    except ValueError:
        return False


def expand_home(text: str) -> Path:
    """A path of this machine with ~ or ~user expanded.

    Raises ValueError where there is no such home.
    """
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise ValueError(f'"{text}": nobody here has that home directory; write the whole path') from error
