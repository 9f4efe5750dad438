"""What of a running device a new spec changes."""

from pathlib import Path

import pytest

from benchmarks.lab import lab
from benchmarks.lab.lab import differs
from benchmarks.lab.spec import DeviceSpec, parse_spec
from benchmarks.lab.state import AppliedDevice, LabState


def device(more: str = "", rate: str = "1mbit", cpus: float = 0.5) -> DeviceSpec:
    text = f'[devices.a]\ncpus = {cpus}\nrate = "{rate}"\n{more}\n'
    return parse_spec(text, Path("spec.toml")).devices[0]


def test_a_profile_holds_while_rates_and_processors_stay() -> None:
    current = AppliedDevice(device(), 1, {})
    assert not differs(current, AppliedDevice(device('memory = "1gb"'), 1, {}))
    assert differs(None, current)
    assert differs(current._replace(shaped=False), current)
    for changed in (device(rate="2mbit"), device(cpus=0.4), device('delay = "1ms"'), device("quota_visible = false")):
        assert differs(current, AppliedDevice(changed, 1, {}))
    assert differs(current, AppliedDevice(device(), 1, {"10.77.1.2": 1e3}))


@pytest.mark.parametrize(("more", "back"), [("", {"10.77.1.1": 3.75e6}), ("one_way = true", {})])
def test_a_link_has_its_rate_both_ways_unless_it_is_one_way(more: str, back: dict[str, float]) -> None:
    devices = "".join(f'[devices.{name}]\ncpus = 0.5\nrate = "1gbit"\n' for name in "ab")
    text = f'{devices}[[links]]\nfrom = "a"\nto = "b"\nrate = "30mbit"\n{more}\n'
    targets = lab._targets(LabState(1, ()), parse_spec(text, Path("spec.toml")))
    assert [each.rates_to for each in targets] == [{"10.77.1.2": 3.75e6}, back]
