"""What stands of a lab: kept on disk, found by name."""

from pathlib import Path

import pytest

from benchmarks.lab import state
from benchmarks.lab.errors import LabError
from benchmarks.lab.spec import parse_spec
from benchmarks.lab.state import AppliedDevice, LabNames, LabState, free_host
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


def test_a_device_keeps_its_place_when_it_changes() -> None:
    current = applied()
    changed = current.of("a")._replace(host=9)
    assert [each.host for each in current.with_device(changed).devices] == [9, 2]
    assert [each.host for each in current.without("a").with_device(changed).devices] == [2, 9]
    with pytest.raises(LabError, match='no device "aa"; did you mean "a"'):
        current.of("aa")


def test_names_leave_room_for_interfaces_and_never_meet() -> None:
    assert len(LabNames("abcdefghij").interface) == 15
    for wrong in ("", "Lab", "a-b", "abcdefghijk", "a/b"):
        with pytest.raises(LabError, match="is no name for a lab"):
            LabNames(wrong)


def test_a_host_number_is_the_first_that_is_free() -> None:
    assert free_host([]) == 1
    assert free_host([1, 2, 4]) == 3
