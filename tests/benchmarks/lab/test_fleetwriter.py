"""The fleet file of a lab, as the rest of the product reads it."""

import sys
from pathlib import Path

import pytest

from benchmarks.lab import state
from benchmarks.lab.errors import LabError
from benchmarks.lab.fleetwriter import fleet_text, require_ours
from benchmarks.lab.spec import parse_spec
from benchmarks.lab.state import AppliedDevice, LabNames, LabState
from planner.fleet.file import load_fleet

SPEC = """\
[devices.tx1]
kind = "tx1"
cpus = 0.25
rate = "10mbit"
[devices.pc]
cpus = 1.0
rate = "1000mbit"
idle_watts = 30
max_watts = 90.5
"""


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LabNames:
    """The lab "x"."""
    monkeypatch.setattr(state, "ROOT", tmp_path)
    found = state.LabNames("x")
    found.folder.mkdir()
    for name in ("client", "ssh_config"):
        (found.folder / name).write_text("")
    return found


def test_it_is_a_fleet_file_that_tells_nothing_of_the_spec(names: LabNames, tmp_path: Path) -> None:
    devices = parse_spec(SPEC, Path("spec.toml")).devices
    current = LabState(7, tuple(AppliedDevice(device, host, {}) for host, device in enumerate(reversed(devices), 1)))
    path = tmp_path / "fleet.toml"
    path.write_text(fleet_text(names, current, devices))
    tx1, pc = load_fleet(path).devices
    assert (tx1.name, tx1.ssh.user, tx1.ssh.host, tx1.kind) == ("tx1", "root", "10.77.7.2", "tx1")
    assert (pc.name, pc.ssh.host, pc.idle_watts, pc.max_watts) == ("pc", "10.77.7.1", 30, 90.5)
    assert tx1.interpreter.python == sys.executable
    assert tx1.ssh.key == names.client
    assert tx1.ssh.ssh_config == names.folder / "ssh_config"
    assert tx1.interpreter.environment == {
        "XDG_CACHE_HOME": str(names.of("tx1") / "cache"),
        "PLANNER_SYSFS_ROOT": str(names.tree("tx1")),
        "CUDA_VISIBLE_DEVICES": "",
    }
    assert all(device.rate_bytes_per_s is None and device.slowdown == 1 for device in (tx1, pc))
    require_ours(path, names)
    with pytest.raises(LabError, match="is another lab's; name another file with --out"):
        require_ours(path, state.LabNames("y"))
