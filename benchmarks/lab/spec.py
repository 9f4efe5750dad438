"""A lab spec (TOML) lists devices, rates between pairs of them, and changes over time."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator

from planner.errors import suggest
from planner.fleet import toml_file
from planner.fleet.quantities import parse_duration, parse_rate, quantity

#: Minimum share of a core: below it, a device waits 25 ms and more for its next quota
#: (``cgroups.LEAST_US``).
LEAST_CPUS = 0.05
#: Idle watts, from public tegrastats lines of idle boards, and NVIDIA's power budget of the module
#: in its usual mode. Of the paper's PC no figure is public: an idle desktop of its age, and the
#: 75 W that NVIDIA states for its GTX 1050.
NAMEPLATES = {
    "pc": (35.0, 110.0),
    "tx1": (2.6, 10.0),
    "tx2": (3.0, 15.0),
    "nano": (1.6, 10.0),
    "xavier-nx": (5.0, 15.0),
    "agx-xavier": (3.1, 30.0),
    "orin-nano": (4.8, 15.0),
    "agx-orin": (7.1, 50.0),
}
#: Host numbers of a lab's /24, without the controller's.
MOST_DEVICES = 253


class DeviceSpec(NamedTuple):
    """One device.

    idle_watts, max_watts: nameplate figures; None where ``NAMEPLATES`` lacks its kind.
    quota_visible: whether its programs can read its share of the cores, as they cannot in a virtual
        machine whose host takes time away.
    """

    name: str
    kind: str
    cpus: float
    rate_bytes_per_s: float
    memory_bytes: int | None
    delay_s: float
    idle_watts: float | None
    max_watts: float | None
    quota_visible: bool = True


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
    assert isinstance(info.context, toml_file.Context)
    if value not in info.context.names:
        raise ValueError(f'no device "{value}"; {suggest(value, info.context.names)}')
    return value


def _size(value: Any) -> int:
    text = _text(value)
    size = quantity(text, text.strip(), {"kb": 1e3, "mb": 1e6, "gb": 1e9}, "a size", "2gb")
    if size <= 0:
        raise ValueError("should be above zero")
    return round(size)


_Name = Annotated[str, AfterValidator(_known)]
_Rate = Annotated[float, BeforeValidator(lambda value: parse_rate(_text(value)))]
_Duration = Annotated[float, BeforeValidator(lambda value: parse_duration(_text(value)))]
_Watts = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Device(toml_file.TomlTable):
    """One ``[devices.NAME]``. A validator sees the keys declared above its own."""

    kind: Annotated[str, Field(min_length=1)] = "pc"
    cpus: Annotated[float, AfterValidator(parse_cpus)]
    rate_bytes_per_s: _Rate = Field(alias="rate")
    memory_bytes: Annotated[int, BeforeValidator(_size)] | None = Field(None, alias="memory")
    delay_s: _Duration = Field(0.0, alias="delay")
    idle_watts: _Watts | None = None
    max_watts: _Watts | None = None
    quota_visible: bool = True


class Link(toml_file.TomlTable):
    """The rate between two devices, both ways or from the source only."""

    source: _Name = Field(alias="from")
    target: _Name = Field(alias="to")
    rate_bytes_per_s: _Rate = Field(alias="rate")
    one_way: bool = False


class Change(toml_file.TomlTable):
    """A change of a device, ``at_s`` after the start; a value of None stays as it is."""

    at_s: _Duration = Field(alias="at")
    device: _Name
    rate_bytes_per_s: _Rate | None = Field(None, alias="rate")
    cpus: Annotated[float | None, Field(validate_default=True)] = None

    @field_validator("cpus")
    @classmethod
    def _cpus(cls, value: float | None, info: ValidationInfo) -> float | None:
        if value is None and info.data.get("rate_bytes_per_s", 0) is None:
            raise ValueError("and rate are both absent, so nothing changes; give one of them")
        return None if value is None else parse_cpus(value)


class _SpecFile(toml_file.TomlTable):
    devices: Annotated[dict[str, _Device], Field(min_length=1, max_length=MOST_DEVICES)]
    links: list[Link] = []
    schedule: list[Change] = []


class Spec(NamedTuple):
    """Devices in the order of their file, the schedule in the order of time."""

    devices: tuple[DeviceSpec, ...]
    links: tuple[Link, ...]
    schedule: tuple[Change, ...]
    path: Path


def load_spec(path: Path) -> Spec:
    """Read a spec. Raises FleetError with every mistake, one a line."""
    return parse_spec(toml_file.read_text(path, "no such lab spec; benchmarks/lab/specs/ holds some"), path)


def parse_spec(text: str, path: Path) -> Spec:
    """The spec of a file's text. Raises FleetError with every mistake, one a line."""
    tables: dict[str, type[toml_file.TomlTable]] = {"devices": _Device, "links": Link, "schedule": Change}
    file = toml_file.parse(_SpecFile, tables, text, path, 'cpus = 1.0 and rate = "100mbit"', _repeated_links)
    return Spec(
        tuple(_device(name, entry) for name, entry in file.devices.items()),
        tuple(file.links),
        tuple(sorted(file.schedule, key=lambda change: change.at_s)),
        path,
    )


def _device(name: str, entry: _Device) -> DeviceSpec:
    idle_watts, max_watts = NAMEPLATES.get(entry.kind, (None, None))
    made = DeviceSpec(name=name, **entry.model_dump())
    return made._replace(
        idle_watts=idle_watts if made.idle_watts is None else made.idle_watts,
        max_watts=max_watts if made.max_watts is None else made.max_watts,
    )


def _repeated_links(table: dict[str, Any]) -> Iterator[toml_file.Mistake]:
    """Mistakes: links of a device to itself, and links that are given twice."""
    links, seen = table.get("links"), set[tuple[object, object]]()
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
