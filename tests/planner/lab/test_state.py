"""What stands of a lab: kept on disk, found by name."""

from pathlib import Path

import pytest

from planner.errors import LabError
from planner.lab import state
from planner.lab.spec import parse_spec
from planner.lab.state import LabState, Standing, free_host, names

SPEC = """\
[devices.a]
cpus = 1.0
rate = "1mbit"
[devices.b]
cpus = 0.5
rate = "2mbit"
memory = "1gb"
sensors = false
"""


def standing() -> LabState:
    first, second = parse_spec(SPEC, Path("spec.toml")).devices
    return LabState(3, (Standing(first, 1, {"10.77.3.2": 1e6}), Standing(second, 2, {})))


def test_what_is_saved_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "ROOT", tmp_path / "labs")
    where = names("x")
    assert state.load(where) is None
    where.folder.mkdir(parents=True)
    state.save(where, standing())
    assert state.load(where) == standing()
    unshaped = standing().with_device(standing().of("a")._replace(shaped=False))
    state.save(where, unshaped)
    assert state.load(where) == unshaped
    where.state.write_text("{")
    with pytest.raises(LabError, match="damaged"):
        state.load(where)
    state.remove(where)
    assert not (tmp_path / "labs").exists()


def test_a_device_keeps_its_place_when_it_changes() -> None:
    stands = standing()
    changed = stands.of("a")._replace(host=9)
    assert [each.host for each in stands.with_device(changed).devices] == [9, 2]
    assert [each.host for each in stands.without("a").with_device(changed).devices] == [2, 9]
    with pytest.raises(LabError, match='no device "aa"; did you mean "a"'):
        stands.of("aa")


def test_names_leave_room_for_interfaces_and_never_meet() -> None:
    assert len(names("abcdefghij").interface) == 15
    for wrong in ("", "Lab", "a-b", "abcdefghijk", "a/b"):
        with pytest.raises(LabError, match="is no name for a lab"):
            names(wrong)
    assert names("a").group("b.meter") != names("a").meter_group("b-meter")


def test_a_host_number_is_the_first_that_is_free() -> None:
    assert free_host([]) == 1
    assert free_host([1, 2, 4]) == 3
