"""A producer fills directories, with the samples and rates of each device."""

import threading
from pathlib import Path
from typing import Any

import pytest

from backends.data.dataset import Dataset
from backends.streams.directory import DirectorySource
from backends.streams.source import SampleSource, StreamRecord
from planner.errors import PlanError, RunError
from planner.stream import ProduceRequest, produce, target
from tests.backends.fakes import CLASSES, images
from tests.backends.stream_sources import CODEC

PIXELS, LABELS = images(40)
DATA = Dataset(PIXELS, LABELS, PIXELS[:4], LABELS[:4], CLASSES)
FAST = "100000"


def to_the_end(source: SampleSource, offset: int = 0) -> list[StreamRecord]:
    source.begin(offset)
    found: list[StreamRecord] = []
    while (records := source.read(0.1)) is not None:
        found += records
    return found


def produced(to: str, *devices: str, limit: int = 20, rates: str = FAST, notes: list[str] | None = None) -> int:
    said: list[str] = [] if notes is None else notes
    return produce(DATA, ProduceRequest(to, rates, devices, 3, limit), threading.Event(), said.append)


def test_every_device_s_directory_gets_its_own_part_of_the_data(tmp_path: Path) -> None:
    notes: list[str] = []
    assert produced(f"directory:{tmp_path}/{{device}}", "pc", "tx2", rates="pc@1e5/tx2@2e5", notes=notes) == 40
    assert notes == [f"pc: 1e+05 samples/s to {tmp_path}/pc", f"tx2: 2e+05 samples/s to {tmp_path}/tx2"]
    found = []
    for name in ("pc", "tx2"):
        records = to_the_end(DirectorySource(str(tmp_path / name)))
        assert [record.offset for record in records] == list(range(20))
        pixels, labels = CODEC.batch([record.payload for record in records])
        found += [(tuple(row.ravel()), int(label)) for row, label in zip(pixels, labels, strict=True)]
    expected = [(tuple(row.ravel()), int(label)) for row, label in zip(PIXELS, LABELS, strict=True)]
    assert sorted(found) == sorted(expected)


def test_a_directory_is_filled_behind_what_is_there_as_one_stream(tmp_path: Path) -> None:
    for folder, limits in (("whole", (30,)), ("parts", (10, 20))):
        for limit in limits:
            produced(f"directory:{tmp_path / folder}", "pc", limit=limit)
            for path in (tmp_path / folder).iterdir():
                if path.read_bytes().endswith(b"\0\0\0\0") and path.stat().st_size == 12:
                    path.unlink()  # the end of the stream
        produced(f"directory:{tmp_path / folder}", "pc", limit=1)
    whole, parts = (to_the_end(DirectorySource(str(tmp_path / folder))) for folder in ("whole", "parts"))
    assert whole == parts and len(whole) == 31


def test_a_full_disk_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device", "x.samples")

    monkeypatch.setattr("planner.stream.DirectoryWriter.write", full)
    with pytest.raises(RunError, match="pc: .*No space left on device.*what was written is whole"):
        produced(f"directory:{tmp_path}/s", "pc")


@pytest.mark.parametrize(
    ("to", "reason"),
    [
        ("replay:S1", "a replay needs no producer"),
        ("directory:/data", "2 devices need a directory each; put {device} into the path"),
        ("cloud:x", "unknown source of a stream 'cloud'"),
    ],
)
def test_where_samples_cannot_go_is_said(to: str, reason: str) -> None:
    with pytest.raises(PlanError, match=reason):
        target(ProduceRequest(to, FAST, ("pc", "tx2")))


def test_rates_that_no_stream_has_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="--rates S9"):
        produced(f"directory:{tmp_path}", "pc", rates="S9")
