"""A lab's spec: what a file says, and every mistake in it with its line."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.lab.spec import DeviceSpec, load_spec, parse_spec
from planner.errors import FleetError
from planner.fleet.quantities import parse_duration, parse_size

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


def test_changes_of_the_same_time_are_made_in_the_order_of_the_file() -> None:
    at = '[[schedule]]\nat = "700s"\ndevice = "tx2"\n'
    spec = parse_spec(f'{WHOLE}\n{at}cpus = 0.4\n{at}rate = "1mbit"\n', Path("lab.toml"))
    assert [(change.rate_bytes_per_s, change.cpus) for change in spec.schedule[-2:]] == [(None, 0.4), (125e3, None)]


def test_a_link_may_be_one_way() -> None:
    spec = parse_spec(WHOLE.replace('rate = "30mbit"', 'rate = "30mbit"\none_way = true'), Path("lab.toml"))
    assert [tuple(dict(link).values()) for link in spec.links] == [("pc", "tx2", 3.75e6, True)]


def test_a_kind_without_a_nameplate_has_watts_only_where_they_are_given() -> None:
    spec = parse_spec('[devices.a]\ncpus = 1\nrate = "1mbit"\nkind = "toaster"\nmax_watts = 900\n', Path("lab.toml"))
    assert (spec.devices[0].idle_watts, spec.devices[0].max_watts) == (None, 900.0)


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


def test_a_direction_has_one_rate() -> None:
    again = '\n[[links]]\nfrom = "tx2"\nto = "pc"\nrate = "1mbit"\none_way = true\n'
    assert mistakes(WHOLE + again) == [
        "lab.toml:29: links.1: tx2 and pc have a link already; remove one, or use one_way = true"
    ]


@pytest.mark.parametrize("text", ["", "devices = 3", "[devices]", "[devices.a]\n[[devices.a.b]]\n", "x ="])
def test_what_is_no_spec_is_a_fleet_error(text: str) -> None:
    assert all(line.startswith("lab.toml:") for line in mistakes(text))


def test_names_that_no_fleet_file_could_have() -> None:
    (line,) = mistakes('[devices."a b"]\ncpus = 1\nrate = "1mbit"\n')
    assert line.startswith("lab.toml:1: devices.a b: a name has letters")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FleetError, match="no such lab spec"):
        load_spec(tmp_path / "lab.toml")


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_every_example_loads(path: Path) -> None:
    assert load_spec(path).devices


def test_there_are_examples() -> None:
    assert list(EXAMPLES.glob("*.toml"))


@given(st.integers(1, 10_000))
def test_units_of_time_and_size_agree(number: int) -> None:
    assert parse_duration(f"{number}min") == pytest.approx(parse_duration(f"{60 * number}s"))
    assert parse_duration(f"{number} s") == pytest.approx(parse_duration(f"{1000 * number}ms"))
    assert parse_size(f"{number}gb") == pytest.approx(parse_size(f"{1000 * number}MB"))
