"""A fleet file names devices and how each is reached; its validation knows every key."""

import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator

from planner.fleet import toml_file
from planner.fleet.device import Device, Fleet, Interpreter, SshLogin, expand_home, parse_address
from planner.fleet.quantities import parse_rate
from profilers.file_tree import Unavailable
from profilers.sensors.external_meters import meter_sensor

#: C0, DEL and C1.
_CONTROL = "".join(map(chr, (*range(32), *range(127, 160))))
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _words(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return shlex.split(value)
    except ValueError as error:
        raise ValueError(f"no shell reads {value!r}: {error}; close the quotation, or write a list") from error


def _passes_words_on(value: list[str]) -> list[str]:
    if value and re.fullmatch("-[a-z]*c", value[-1]):  # of a shell, or of su and script
        raise ValueError(f'{value[-1]} takes one word as its command; write \'exec "$0" "$@"\' after it')
    return value


def _address(value: str) -> str:
    if value != "local":
        parse_address(value)
    return value


def _jump(value: str) -> str:
    """The hosts without the spaces between them, which ssh does not take."""
    hops = [hop.strip() for hop in value.split(",")]
    for hop in [] if hops == ["none"] else hops:
        parse_address(hop)
    return ",".join(hops)


def _rate(value: str) -> str:
    parse_rate(value)
    return value


def _meters(value: list[str]) -> list[str]:
    for url in value:
        try:
            meter_sensor(url)
        except Unavailable as error:
            raise ValueError(str(error)) from error
        if url.split() != [url]:
            raise ValueError(f'"{url}" holds a space; write %20')
    return value


def _only_over_ssh(value: str, info: ValidationInfo) -> str:
    if info.data.get("address") == "local":
        raise ValueError('means nothing where address is "local"; remove it')
    return value


def _variables(value: dict[str, str]) -> dict[str, str]:
    wrong = [name for name in value if not _VARIABLE.fullmatch(name)]
    if wrong:
        raise ValueError(f"not names of variables: {', '.join(map(repr, wrong))}")
    return value


def _file(what: str, remedy: str) -> Callable[[str, ValidationInfo], str]:
    """A validator of a path: ~ is expanded, relative ones start at the fleet file's folder."""

    def absolute(value: str, info: ValidationInfo) -> str:
        assert isinstance(info.context, toml_file.Context)
        path = (info.context.folder / expand_home(value)).absolute()
        if not path.is_file():
            raise ValueError(f"there is no {what} {path}; {remedy}, or correct the path")
        return str(path)

    return absolute


_OverSsh = Annotated[str, AfterValidator(_only_over_ssh)]
_Text = Annotated[str, Field(min_length=1)]
_KeyFile = Annotated[_OverSsh, AfterValidator(_file("key file", "make one with ssh-keygen"))]
_PowerModel = Annotated[str, AfterValidator(_file("power model", "fit one with `planner power fit`"))]


class _Login(toml_file.TomlTable):
    """How a device is reached. A validator sees the keys declared above its own."""

    address: Annotated[str, AfterValidator(_address)]
    key: _KeyFile | None = None
    jump: Annotated[_OverSsh, AfterValidator(_jump)] | None = None
    ssh: Annotated[Literal["program"], AfterValidator(_only_over_ssh)] | None = None

    @field_validator("*")
    @classmethod
    def _printable(cls, value: Any) -> Any:
        """No shell takes these signs; only values of variables may have several lines."""
        texts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else [value]
        wrong = "\0" if isinstance(value, dict) else _CONTROL
        for text in texts:
            if isinstance(text, str) and any(sign in wrong for sign in text):
                raise ValueError(f"{text!r} holds a control character; remove it")
        return value


class _Agent(_Login):
    """What starts its agents."""

    prefix: Annotated[list[str], BeforeValidator(_words), AfterValidator(_passes_words_on)] = []
    python: _Text | None = None
    venv: _Text | None = None
    environment: Annotated[dict[str, str], AfterValidator(_variables)] = {}

    @field_validator("python", "venv")
    @classmethod
    def _interpreter(cls, value: str, info: ValidationInfo) -> str:
        if value.startswith("~") and (info.data.get("prefix") or not value.startswith("~/")):
            raise ValueError(f'"{value}": no shell expands this ~ on the device; write the whole path')
        if info.data.get("address") == "local":
            expand_home(value)
        if info.data.get("python") is not None:
            raise ValueError("and python both name an interpreter; keep one of them")
        return value


class _Entry(_Agent):
    """One ``[devices.NAME]``."""

    kind: _Text = "pc"
    device: Literal["cpu", "cuda", "mps"] | None = None
    data: _Text | None = None
    data_address: _Text | None = None
    data_interface: _Text | None = None
    rate: Annotated[str, AfterValidator(_rate)] | None = None
    slowdown: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 1.0
    idle_watts: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    max_watts: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    meters: Annotated[list[str], AfterValidator(_meters)] = []
    power_model: _PowerModel | None = None

    @field_validator("max_watts")
    @classmethod
    def _watts(cls, value: float, info: ValidationInfo) -> float:
        idle = info.data.get("idle_watts")
        if idle is not None and value < idle:
            raise ValueError(f"{value:g} W is below idle_watts, {idle:g} W; exchange or correct them")
        return value


class _FleetFile(toml_file.TomlTable):
    ssh_config: Annotated[str, AfterValidator(_file("file", "remove the line"))] | None = None
    ssh: Literal["program"] | None = None
    trusted_network: bool = False
    devices: Annotated[dict[str, _Entry], Field(min_length=1)]


def load_fleet(path: Path) -> Fleet:
    """Read a fleet file. Raises FleetError with every mistake, one a line."""
    text = toml_file.read_text(path, "no such fleet file; `planner init` writes an example to edit")
    file = toml_file.parse(_FleetFile, {"devices": _Entry}, text, path, 'address = "user@host" or "local"')
    devices = tuple(_device(name, entry, file) for name, entry in file.devices.items())
    return Fleet(devices, path, file.trusted_network)


def _device(name: str, entry: _Entry, file: _FleetFile) -> Device:
    unchanged = entry.model_dump(
        include={"kind", "data_address", "data_interface", "idle_watts", "max_watts", "slowdown", "data"}
    )
    return Device(
        name=name,
        ssh=None if entry.address == "local" else _login(entry, file),
        meters=tuple(entry.meters),
        power_model=Path(entry.power_model) if entry.power_model else None,
        interpreter=Interpreter(_python(entry), tuple(entry.prefix), entry.environment),
        computes_on=entry.device,
        rate_bytes_per_s=parse_rate(entry.rate) if entry.rate else None,
        **unchanged,
    )


def _login(entry: _Login, file: _FleetFile) -> SshLogin:
    user, host, port = parse_address(entry.address)
    key, config = (Path(each) if each else None for each in (entry.key, file.ssh_config))
    return SshLogin(host, port, user, key, entry.jump, config, program="program" in (entry.ssh, file.ssh))


def _python(entry: _Agent) -> str:
    """The interpreter; a ``~/`` in it is left to the shell of a device that is not this machine."""
    program = f"{entry.venv.rstrip('/')}/bin/python" if entry.venv else entry.python
    if entry.address == "local":
        return str(Path(program).expanduser()) if program else sys.executable
    return program or "python3"
