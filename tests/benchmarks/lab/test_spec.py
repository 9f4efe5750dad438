"""A lab's spec: what a file says, and every mistake in it with its line."""

from pathlib import Path

import pytest

from benchmarks.lab.spec import DeviceSpec, load_spec, parse_spec
from planner.errors import FleetError

EXAMPLES = Path(__file__).parents[3] / "benchmarks" / "lab" / "specs"

WHOLE = """\
[devices.pc]
cpus = 1.0
rate = "1000mbit"

[devices.tx2]
kind = "tx2"
cpus = 0.5
rate = "100mbit"
memory = "2gb"
delay = "20ms"
idle_watts = 2
max_watts = 15

[[links]]
from = "pc"
to = "tx2"
rate = "30mbit"

[[schedule]]
at = "10min"
device = "pc"
cpus = 0.5

[[schedule]]
at = "500s"
device = "tx2"
rate = "50mbit"
"""


def mistakes(text: str) -> list[str]:
    with pytest.raises(FleetError) as caught:
        parse_spec(text, Path("lab.toml"))
    return str(caught.value).splitlines()


def test_a_whole_spec() -> None:
    spec = parse_spec(WHOLE, Path("lab.toml"))
    assert spec.devices == (
        DeviceSpec("pc", "pc", 1.0, 125e6, None, 0.0, 35.0, 110.0),
        DeviceSpec("tx2", "tx2", 0.5, 12.5e6, 2_000_000_000, 0.02, 2.0, 15.0),
    )
    assert [tuple(dict(link).values()) for link in spec.links] == [("pc", "tx2", 3.75e6, False)]
    changes = [tuple(dict(change).values()) for change in spec.schedule]
    assert changes == [(500.0, "tx2", 6.25e6, None), (600.0, "pc", None, 0.5)]


def test_all_mistakes_at_once_each_with_its_line() -> None:
    wrong = """\
[devices.pc]
cpus = 0.01
rate = 100
[devices.tx2]
kind = "tx3"
cpus = 1.0
rate = "fast"
colour = "red"
[[links]]
from = "pc"
to = "nano"
rate = "1mbit"
[[links]]
from = "pc"
to = "pc"
rate = "1mbit"
[[schedule]]
at = "soon"
device = "tx2"
"""
    found = mistakes(wrong)
    starts = [
        "lab.toml:2: devices.pc.cpus: 0.01 cpus are less than the kernel can grant; write 0.05 or more",
        "lab.toml:3: devices.pc.rate: should be a text with a unit, not 100",
        'lab.toml:7: devices.tx2.rate: "fast" is not a rate',
        "lab.toml:8: devices.tx2.colour: unknown key; known: kind, cpus, rate",
        'lab.toml:11: links.0.to: no device "nano"; known: pc, tx2',
        "lab.toml:15: links.1.to: a device has no link to itself",
        "lab.toml:17: schedule.0.cpus: and rate are both absent",
        'lab.toml:18: schedule.0.at: "soon" is not a duration',
    ]
    assert [line[: len(start)] for line, start in zip(found, starts, strict=True)] == starts


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_every_example_loads(path: Path) -> None:
    assert load_spec(path).devices
