"""Records read from JSON and written to files, and the errors that name a key path."""

import math
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from planner import json_records
from planner.errors import PlannerError, RecordError
from planner.fleet.file import load_fleet
from planner.profile.file import Profile, load_profile
from profilers.records.links import CurvePoint, IncastProfile, LinkProfile
from profilers.records.readings import PowerReading, Samples
from profilers.records.steps import BatchTiming
from tests.planner import profiles

SAMPLES = {"unit": "s", "values": []}


def whole() -> Profile:
    incasts = (IncastProfile("a", "in", "iperf3", {"b": 1.0}),)
    return profiles.profile({"a": profiles.device(), "b": profiles.device()}, incasts=incasts)


def test_a_whole_number_is_read_as_the_float_it_stands_for() -> None:
    value = json_records.decode(Samples, {"unit": "s", "values": [1, 2.5]})
    assert value == Samples("s", (1.0, 2.5))
    assert all(isinstance(each, float) for each in value.values)


def test_an_optional_value_may_be_null_and_a_default_may_be_absent() -> None:
    value = {"sensor": "x", "source": "sensor", "covers": "gpu", "watts": None, "stdev": None, "count": 0}
    assert json_records.decode(PowerReading, value).reason is None


@pytest.mark.parametrize(
    ("cls", "value", "message"),
    [
        (Samples, {"unit": "s", "values": [1, "x"]}, "step.values[1]: expected a number, found 'x'"),
        (Samples, {"unit": "s", "values": [True]}, "step.values[0]: expected a number, found True"),
        (Samples, {"unit": 3, "values": []}, "step.unit: expected a text, found 3"),
        (Samples, {"unit": "s", "values": {}}, "step.values: expected a list, found {}"),
        (Samples, [], "step: expected an object or 3 values, found []"),
        (Samples, {"unit": "s"}, "step: missing 'values'"),
        (Samples, {"unit": "s", "values": [], "speed": 1}, "step: unknown 'speed'"),
        (CurvePoint, {"message_bytes": 1.5, "seconds": SAMPLES}, "step.message_bytes: expected a whole number"),
        (CurvePoint, {"message_bytes": True, "seconds": SAMPLES}, "step.message_bytes: expected a whole number"),
        (CurvePoint, {"message_bytes": 1, "seconds": {"unit": 1}}, "step.seconds: missing 'values'"),
        (Samples, {"unit": "s", "values": [-1]}, "step.values[0]: expected a number from 0 on, found -1"),
        (Samples, {"unit": "s", "values": [1, math.inf]}, "step.values[1]: expected a number from 0 on, found inf"),
        (Samples, {"unit": "s", "values": [math.nan]}, "step.values[0]: expected a number from 0 on, found nan"),
        (Samples, {"unit": "s", "values": [10**400]}, "step.values[0]: expected a number"),
        (CurvePoint, {"message_bytes": 10**400, "seconds": SAMPLES}, "step.message_bytes: expected a whole number"),
        (BatchTiming, {"batch": 0, "gradient_s": SAMPLES}, "step.batch: expected a whole number from 1 on, found 0"),
        (IncastProfile, {"host": "a", "direction": "in", "tool": "x", "bytes_per_s": {"b": None}},
         "step.bytes_per_s.b: expected a number, found None"),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_named_by_its_path(cls: type, value: object, message: str) -> None:
    with pytest.raises(RecordError) as caught:
        json_records.decode(cls, value, "step")
    assert message in str(caught.value)


def test_missing_and_unknown_keys_are_reported_together() -> None:
    with pytest.raises(RecordError, match="missing 'source', .*missing 'receive_cpu_s', unknown 'speed'"):
        json_records.decode(LinkProfile, {"speed": 1})


def test_a_saved_profile_loads_again(tmp_path: Path) -> None:
    json_records.save(whole(), tmp_path / "profile.json")
    assert load_profile(tmp_path / "profile.json") == whole()
    assert [path.name for path in tmp_path.iterdir()] == ["profile.json"]


def test_a_truncated_file_names_its_line_and_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    json_records.save(whole(), path)
    path.write_text(path.read_text()[:200])
    with pytest.raises(RecordError, match=r"profile.json, line \d+: not JSON .*; run `planner profile --fresh`"):
        load_profile(path)


def test_another_schema_is_refused_before_anything_else(tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    path.write_text('{"schema": 99, "something": "else"}')
    with pytest.raises(RecordError, match="schema: written as 99, this planner reads 1; run `planner profile --fresh`"):
        load_profile(path)


@pytest.mark.parametrize("content", [b"[]", b"{}", b'{"schema": NaN}', b"\xff\xfe", b""])
def test_other_files_are_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "profile.json"
    path.write_bytes(content)
    with pytest.raises(RecordError, match="profile.json.*run `planner profile --fresh`"):
        load_profile(path)


def test_a_full_disk_is_reported_and_leaves_the_older_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "profile.json"
    path.write_text("older")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(RecordError, match="cannot write .*profile.json: No space left on device; make room"):
        json_records.save(whole(), path)
    assert path.read_text() == "older"
    assert [each.name for each in tmp_path.iterdir()] == ["profile.json"]


@pytest.mark.parametrize("read", [load_profile, load_fleet])
def test_a_pipe_in_the_place_of_a_file_is_named_at_once(tmp_path: Path, read: Callable[[Path], object]) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(PlannerError, match="pipe.*it is a pipe, and no file"):
        read(tmp_path / "pipe")
