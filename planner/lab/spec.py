"""A lab spec (TOML) lists devices, rates between pairs of them, and changes over time."""

import math
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from pydantic_core import ErrorDetails

from planner.errors import FleetError, suggest
from planner.fleet.device import parse_rate
from planner.fleet.toml_errors import Mistake, explain, not_toml, place, report
from planner.lab.power import PhysicalPower, from_table
from planner.lab.units import parse_duration, parse_size

#: Minimum share of a core: below it, a device waits 25 ms and more for its next quota
#: (``cgroups.LEAST_US``).
LEAST_CPUS = 0.05
#: Host numbers of a lab's /24, without the controller's.
MOST_DEVICES = 253

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


class DeviceSpec(NamedTuple):
    """One device. ``power`` is None where it has no sensors."""

    name: str
    kind: str
    cpus: float
    rate_bytes_per_s: float
    memory_bytes: int | None
    delay_s: float
    idle_watts: float | None
    max_watts: float | None
    power: PhysicalPower | None
    sensors: bool


class LinkSpec(NamedTuple):
    """The rate from one device to another, in one direction."""

    source: str
    target: str
    rate_bytes_per_s: float


class Change(NamedTuple):
    """A change of a device, ``at_s`` after the start; a value of None stays as it is."""

    at_s: float
    device: str
    rate_bytes_per_s: float | None
    cpus: float | None


class Spec(NamedTuple):
    """Devices in the order of their file, the schedule in the order of time."""

    devices: tuple[DeviceSpec, ...]
    links: tuple[LinkSpec, ...]
    schedule: tuple[Change, ...]
    path: Path


def load_spec(path: Path) -> Spec:
    """Read a spec. Raises FleetError with every mistake, one a line."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FleetError(f"{path}: no such lab spec; examples/lab/ holds some to start from") from None
    except (OSError, UnicodeDecodeError) as error:
        raise FleetError(f"{path}: cannot be read as UTF-8 text: {error}") from error
    return parse_spec(text, path)


def parse_spec(text: str, path: Path) -> Spec:
    """The spec of a file's text. Raises FleetError with every mistake, one a line."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FleetError(not_toml(path, text, str(error))) from error
    devices = table.get("devices")
    names = list(devices) if isinstance(devices, dict) else []
    mistakes = [*_bad_names(names), *_repeated(table.get("links"))]
    try:
        file = _SpecFile.model_validate(table, context=names)
    except ValidationError as error:
        mistakes += [(place(details), _say(details)) for details in error.errors()]
    if mistakes:
        raise FleetError(report(path, text, mistakes))
    return Spec(
        tuple(_device(name, entry) for name, entry in file.devices.items()),
        tuple(link for entry in file.links for link in _links(entry)),
        tuple(sorted(map(_change, file.schedule))),
        path,
    )


def parse_cpus(value: float) -> float:
    """A share of the machine's cores that the kernel can grant. Raises ValueError."""
    if not LEAST_CPUS <= value < math.inf:
        raise ValueError(f"{value:g} cpus are less than the kernel can grant; write {LEAST_CPUS:g} or more")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"should be a text with a unit, not {value!r}")
    return value


def _known(value: str, info: ValidationInfo) -> str:
    names = info.context
    assert isinstance(names, list)
    if value not in names:
        raise ValueError(f'no device "{value}"; {suggest(value, names)}')
    return value


def _above_zero(value: float) -> float:
    if value <= 0:
        raise ValueError("should be above zero")
    return value


_Rate = Annotated[float, BeforeValidator(lambda value: parse_rate(_text(value)))]
_Duration = Annotated[float, BeforeValidator(lambda value: parse_duration(_text(value)))]
_Size = Annotated[float, BeforeValidator(lambda value: _above_zero(parse_size(_text(value))))]
_Watts = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _SpecTable(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Device(_SpecTable):
    """One ``[devices.NAME]``. A validator sees the keys declared above its own."""

    kind: Annotated[str, Field(min_length=1)] = "pc"
    cpus: float
    rate: _Rate
    memory: _Size | None = None
    delay: _Duration = 0.0
    idle_watts: _Watts | None = None
    max_watts: _Watts | None = None
    sensors: bool = True
    power: Annotated[dict[str, Any], Field(validate_default=True)] = {}

    _cpus = field_validator("cpus")(parse_cpus)

    @field_validator("power")
    @classmethod
    def _power(cls, value: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        if info.data.get("sensors") and "kind" in info.data:
            from_table(info.data["kind"], value)
        elif value and "sensors" in info.data:
            raise ValueError("means nothing where sensors = false; remove it")
        return value


class _Link(_SpecTable):
    source: Annotated[str, Field(alias="from")]
    target: Annotated[str, Field(alias="to")]
    rate: _Rate
    one_way: bool = False

    _ends = field_validator("source", "target")(_known)


class _Change(_SpecTable):
    at: _Duration
    device: str
    rate: _Rate | None = None
    cpus: Annotated[float | None, Field(validate_default=True)] = None

    _device = field_validator("device")(_known)

    @field_validator("cpus")
    @classmethod
    def _cpus(cls, value: float | None, info: ValidationInfo) -> float | None:
        if value is None and info.data.get("rate", 0) is None:
            raise ValueError("and rate are both absent, so nothing changes; give one of them")
        return None if value is None else parse_cpus(value)


class _SpecFile(_SpecTable):
    devices: Annotated[dict[str, _Device], Field(min_length=1, max_length=MOST_DEVICES)]
    links: list[_Link] = []
    schedule: list[_Change] = []


def _device(name: str, entry: _Device) -> DeviceSpec:
    return DeviceSpec(
        name=name,
        kind=entry.kind,
        cpus=entry.cpus,
        rate_bytes_per_s=entry.rate,
        memory_bytes=None if entry.memory is None else round(entry.memory),
        delay_s=entry.delay,
        idle_watts=entry.idle_watts,
        max_watts=entry.max_watts,
        power=from_table(entry.kind, entry.power) if entry.sensors else None,
        sensors=entry.sensors,
    )


def _links(entry: _Link) -> Iterator[LinkSpec]:
    yield LinkSpec(entry.source, entry.target, entry.rate)
    if not entry.one_way:
        yield LinkSpec(entry.target, entry.source, entry.rate)


def _change(entry: _Change) -> Change:
    return Change(entry.at, entry.device, entry.rate, entry.cpus)


def _bad_names(names: list[str]) -> Iterator[Mistake]:
    for name in names:
        if not _NAME.fullmatch(name):
            yield ("devices", name), "a name has letters, digits, - and _, and starts with a letter or digit"


def _repeated(links: object) -> Iterator[Mistake]:
    """Mistakes: links of a device to itself, and links that are given twice."""
    seen: set[tuple[object, object]] = set()
    for number, link in enumerate(links if isinstance(links, list) else ()):
        if not isinstance(link, dict) or "from" not in link or "to" not in link:
            continue
        way = (link["from"], link["to"])
        ways = {way} if link.get("one_way") is True else {way, way[::-1]}
        if way[0] == way[1]:
            yield ("links", str(number), "to"), "a device has no link to itself; name another"
        elif ways & seen:
            problem = f"{way[0]} and {way[1]} have a link already; remove one, or use one_way = true"
            yield ("links", str(number)), problem
        seen |= ways


def _say(details: ErrorDetails) -> str:
    location, kind = place(details), details["type"]
    if location == ("devices",) and kind in ("missing", "too_short"):
        return 'there are no devices; add [devices.NAME] with cpus = 1.0 and rate = "100mbit"'
    tables: dict[str, type[BaseModel]] = {"devices": _Device, "links": _Link, "schedule": _Change}
    table = tables.get(location[0], _SpecFile) if len(location) > 1 else _SpecFile
    return explain(details, [field.alias or name for name, field in table.model_fields.items()])
