"""What a lab device hands on to its sensor emulator."""

from pathlib import Path

import pytest

from planner.lab import state
from planner.lab.device import LabDevice
from planner.lab.kernel_counters import CpuCounter
from planner.lab.sensor_emulator import load_config
from planner.lab.spec import DeviceSpec, parse_spec
from planner.lab.state import LabNames

SPEC = """\
seed = 5
[devices.a]
cpus = 0.5
rate = "1mbit"
[devices.b]
cpus = 0.5
rate = "1mbit"
linear_power = true
"""


class Groups:
    """Control groups without limits."""

    def set_cpus(self, group: str, cpus: float) -> None:
        pass

    def set_memory(self, group: str, limit_bytes: int | None) -> None:
        pass

    def usage(self, group: str) -> CpuCounter:
        return CpuCounter(f"/groups/{group}", 1e-9)


@pytest.mark.parametrize("device", parse_spec(SPEC, Path("lab.toml")).devices, ids=lambda device: device.name)
def test_its_emulator_gets_its_power_and_its_terms(
    device: DeviceSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "ROOT", tmp_path)
    names = LabNames("x")
    names.of(device.name).mkdir(parents=True)
    LabDevice(names, Groups(), device.name, 1, "10.77.1.1").limit(device)
    config = load_config(str(names.of(device.name) / "sensor_emulator.json"))
    assert (config.power, config.terms) == (device.power, device.terms)
    assert (config.terms is None) == (device.name == "b")
