"""A fleet file is validated as a whole: every mistake is reported with its line and a remedy."""

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_core import ErrorDetails

from planner.errors import FleetError
from planner.fleet.device import Address, Device, Fleet, default_python, expand_home, parse_address, parse_rate
from planner.fleet.toml_errors import Mistake, explain, not_toml, place, repeated, report
from profilers.file_tree import Unavailable
from profilers.sensors.external_meters import meter_sensor

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _words(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return shlex.split(value)
    except ValueError as error:
        raise ValueError(f"no shell reads {value!r}: {error}; close the quotation, or write a list") from error


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Entry(_Table):
    """One ``[devices.NAME]``. A validator sees the keys declared above its own."""

    address: str
    key: str | None = None
    jump: str | None = None
    kind: Annotated[str, Field(min_length=1)] = "pc"
    data_address: Annotated[str | None, Field(min_length=1)] = None
    data_interface: Annotated[str | None, Field(min_length=1)] = None
    idle_watts: Annotated[float | None, Field(ge=0, allow_inf_nan=False)] = None
    max_watts: Annotated[float | None, Field(gt=0, allow_inf_nan=False)] = None
    meters: list[str] = []
    power_model: str | None = None
    prefix: Annotated[list[str], BeforeValidator(_words)] = []
    python: Annotated[str | None, Field(min_length=1)] = None
    venv: Annotated[str | None, Field(min_length=1)] = None
    environment: dict[str, str] = {}
    rate: str | None = None
    slowdown: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 1.0

    @field_validator("address")
    @classmethod
    def _address(cls, value: str) -> str:
        if value != "local":
            parse_address(value)
        return value

    @field_validator("key", "jump")
    @classmethod
    def _only_over_ssh(cls, value: str | None, info: ValidationInfo) -> str | None:
        if info.data.get("address") == "local":
            raise ValueError('means nothing where address is "local"; remove it')
        return value

    @field_validator("key")
    @classmethod
    def _key(cls, value: str, info: ValidationInfo) -> str:
        return _file(value, info, "key file", "make one with ssh-keygen")

    @field_validator("jump")
    @classmethod
    def _jump(cls, value: str) -> str:
        for hop in [] if value == "none" else value.split(","):
            parse_address(hop.strip())
        return value

    @field_validator("max_watts")
    @classmethod
    def _watts(cls, value: float, info: ValidationInfo) -> float:
        idle = info.data.get("idle_watts")
        if idle is not None and value < idle:
            raise ValueError(f"{value:g} W is below idle_watts, {idle:g} W; exchange or correct them")
        return value

    @field_validator("meters")
    @classmethod
    def _meters(cls, value: list[str]) -> list[str]:
        for url in value:
            try:
                meter_sensor(url)
            except Unavailable as error:
                raise ValueError(str(error)) from error
            if url.split() != [url]:
                raise ValueError(f'"{url}" holds a space; write %20')
        return value

    @field_validator("power_model")
    @classmethod
    def _power_model(cls, value: str, info: ValidationInfo) -> str:
        return _file(value, info, "power model", "fit one with `planner power fit`")

    @field_validator("python", "venv")
    @classmethod
    def _home(cls, value: str, info: ValidationInfo) -> str:
        if value.startswith("~") and (info.data.get("prefix") or not value.startswith("~/")):
            raise ValueError(f'"{value}": no shell expands this ~ on the device; write the whole path')
        return value

    @field_validator("venv")
    @classmethod
    def _one_python(cls, value: str, info: ValidationInfo) -> str:
        if info.data.get("python") is not None:
            raise ValueError("and python both name an interpreter; keep one of them")
        return value

    @field_validator("environment")
    @classmethod
    def _variables(cls, value: dict[str, str]) -> dict[str, str]:
        wrong = [name for name in value if not _VARIABLE.fullmatch(name)]
        if wrong:
            raise ValueError(f"not names of variables: {', '.join(map(repr, wrong))}")
        return value

    @field_validator("rate")
    @classmethod
    def _rate(cls, value: str) -> str:
        parse_rate(value)
        return value


class _File(_Table):
    ssh_config: str | None = None
    devices: Annotated[dict[str, _Entry], Field(min_length=1)]

    @field_validator("ssh_config")
    @classmethod
    def _ssh_config(cls, value: str, info: ValidationInfo) -> str:
        path = _beside(value, info)
        if not path.is_file():
            raise ValueError(f"there is no file {path}; correct or remove it")
        return str(path)


def parse_fleet(text: str, path: Path) -> Fleet:
    """The fleet of a file's text. Raises FleetError with every mistake, one a line."""
    twice = [f"{path}:{line}: devices.{name} is declared twice; rename one" for name, line in repeated(text, "devices")]
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FleetError("\n".join(twice or [not_toml(path, text, str(error))])) from error
    mistakes = list(_bad_names(table))
    try:
        file = _File.model_validate(table, context=path.parent)
    except ValidationError as error:
        mistakes += [(place(details), _say(details)) for details in error.errors()]
    if mistakes:
        raise FleetError(report(path, text, mistakes))
    config = Path(file.ssh_config) if file.ssh_config else None
    return Fleet(tuple(_device(name, entry, config) for name, entry in file.devices.items()), path)


def _device(name: str, entry: _Entry, ssh_config: Path | None) -> Device:
    local = entry.address == "local"
    address = Address(None, "", None) if local else parse_address(entry.address)
    python = f"{entry.venv.rstrip('/')}/bin/python" if entry.venv else entry.python
    return Device(
        name=name,
        host=None if local else address.host,
        port=address.port,
        user=address.user,
        key=Path(entry.key) if entry.key else None,
        jump=entry.jump,
        kind=entry.kind,
        data_address=entry.data_address,
        data_interface=entry.data_interface,
        idle_watts=entry.idle_watts,
        max_watts=entry.max_watts,
        meters=tuple(entry.meters),
        power_model=Path(entry.power_model) if entry.power_model else None,
        python=_at_home(python, local) if python else default_python(local),
        prefix=tuple(entry.prefix),
        environment=entry.environment,
        rate_bytes_per_s=parse_rate(entry.rate) if entry.rate else None,
        slowdown=entry.slowdown,
        ssh_config=None if local else ssh_config,
    )


def _at_home(program: str, local: bool) -> str:
    """A program path without ``~/``, for sshd starts every command in the home directory."""
    if local:
        return str(Path(program).expanduser())
    return f"./{program[2:]}" if program.startswith("~/") else program


def _file(value: str, info: ValidationInfo, what: str, remedy: str) -> str:
    """The path of a file that the fleet file names. Raises ValueError where there is none."""
    path = _beside(value, info)
    if not path.is_file():
        raise ValueError(f"there is no {what} {path}; {remedy}, or correct the path")
    return str(path)


def _beside(value: str, info: ValidationInfo) -> Path:
    """A path as written in the file: ~ is expanded, relative ones start at the file's folder."""
    folder = info.context
    assert isinstance(folder, Path)
    return (folder / expand_home(value)).absolute()


def _bad_names(table: dict[str, Any]) -> Iterator[Mistake]:
    devices = table.get("devices")
    for name in devices if isinstance(devices, dict) else ():
        if not _NAME.fullmatch(name):
            yield ("devices", name), "a name has letters, digits, - and _, and starts with a letter or digit"


def _say(details: ErrorDetails) -> str:
    location, kind = place(details), details["type"]
    if location == ("devices",) and kind in ("missing", "too_short"):
        absent = "there are no devices" if kind == "missing" else "is empty"
        return f'{absent}; add [devices.NAME] with address = "user@host" or "local"'
    return explain(details, (_Entry if location[:1] == ("devices",) else _File).model_fields)


def load_fleet(path: Path) -> Fleet:
    """Read a fleet file. Raises FleetError with every mistake, one a line."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FleetError(f"{path}: no such fleet file; `planner init` writes an example to edit") from None
    except (OSError, UnicodeDecodeError) as error:
        raise FleetError(f"{path}: cannot be read as UTF-8 text: {error}") from error
    return parse_fleet(text, path)
