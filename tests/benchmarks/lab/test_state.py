"""What stands of a lab: kept on disk, found by name."""

from pathlib import Path

import pytest

from benchmarks.lab import state
from benchmarks.lab.spec import parse_spec
from benchmarks.lab.state import AppliedDevice, LabNames, LabState
from planner.errors import RecordError

SPEC = """\
[devices.a]
cpus = 1.0
rate = "1mbit"
[devices.b]
cpus = 0.5
rate = "2mbit"
memory = "1gb"
"""


def applied() -> LabState:
    first, second = parse_spec(SPEC, Path("spec.toml")).devices
    return LabState(3, (AppliedDevice(first, 1, {"10.77.3.2": 1e6}), AppliedDevice(second, 2, {})))


def test_what_is_saved_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "ROOT", tmp_path / "labs")
    names = LabNames("x")
    assert state.load(names) is None
    names.folder.mkdir(parents=True)
    state.save(names, applied())
    assert state.load(names) == applied()
    unshaped = applied().with_device(applied().of("a")._replace(shaped=False))
    state.save(names, unshaped)
    assert state.load(names) == unshaped
    names.state.write_text("{")
    with pytest.raises(RecordError, match="not JSON .*; `python -m benchmarks.lab down --name x`"):
        state.load(names)
    state.remove(names)
    assert not (tmp_path / "labs").exists()
