"""Persistence keeps every sample, partly on disk; truncation keeps the newest of a second."""

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backends.streams.buffer import PersistingBuffer, SampleBuffer, TruncatingBuffer
from backends.streams.segments import SegmentFolder
from backends.streams.source import StreamRecord


def numbered(*offsets: int) -> list[StreamRecord]:
    return [StreamRecord(offset, b"sample %d" % offset) for offset in offsets]


def taken(buffer: SampleBuffer, count: int) -> list[int]:
    records = buffer.take(count)
    assert all(record.payload == b"sample %d" % record.offset for record in records)
    return [record.offset for record in records]


def test_truncation_keeps_the_newest_that_arrive_in_a_second_and_counts_the_others() -> None:
    buffer = TruncatingBuffer()
    buffer.add(numbered(*range(10)), rate=4.0)
    assert (len(buffer), buffer.dropped) == (4, 6)
    assert taken(buffer, 2) == [6, 7]
    buffer.add(numbered(10), rate=4.0)
    assert (taken(buffer, 3), buffer.dropped) == ([8, 9, 10], 6)


def test_truncation_keeps_what_is_waited_for_of_a_stream_that_is_slower() -> None:
    buffer = TruncatingBuffer()
    buffer.reserve(8)
    for offset in range(20):
        buffer.add(numbered(offset), rate=3.0)
    assert (len(buffer), buffer.dropped) == (8, 12)


def test_persistence_bounds_memory_and_gives_everything_back_in_order(tmp_path: Path) -> None:
    folder = SegmentFolder(str(tmp_path / "stream"))
    buffer = PersistingBuffer(4, folder)
    buffer.add(numbered(*range(30)), rate=1.0)
    assert (len(buffer), len(folder), buffer.stored) == (30, 24, 24)
    assert len(list((tmp_path / "stream").iterdir())) == 6
    assert taken(buffer, 30) == list(range(30))
    assert (len(buffer), buffer.dropped, list((tmp_path / "stream").iterdir())) == (0, 0, [])


@settings(deadline=None)
@given(
    memory=st.integers(1, 5),
    moves=st.lists(st.tuples(st.sampled_from(["add", "take", "put back"]), st.integers(0, 12)), max_size=30),
)
def test_persistence_is_a_queue(tmp_path_factory: pytest.TempPathFactory, memory: int, moves: list) -> None:
    buffer = PersistingBuffer(memory, SegmentFolder(str(tmp_path_factory.mktemp("queue") / "stream")))
    expected: list[int] = []
    last: list[StreamRecord] = []
    arrived = 0
    for move, count in moves:
        if move == "add":
            buffer.add(numbered(*range(arrived, arrived + count)), rate=1.0)
            expected += range(arrived, arrived + count)
            arrived, last = arrived + count, []
        elif move == "take":
            count = min(count, len(expected))
            last = buffer.take(count)
            assert [record.offset for record in last] == expected[:count]
            expected = expected[count:]
        else:
            buffer.put_back(last)
            expected = [record.offset for record in last] + expected
            last = []
        assert len(buffer) == len(expected) <= buffer.peak


def test_a_full_disk_is_an_error_that_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = PersistingBuffer(4, SegmentFolder(str(tmp_path / "stream")))
    buffer.add(numbered(*range(12)), rate=1.0)
    real = os.open

    def full(path: str, flags: int, *mode: int) -> int:
        if str(path).endswith(".samples"):
            raise OSError(errno.ENOSPC, "No space left on device", path)
        return real(path, flags, *mode)

    monkeypatch.setattr("backends.streams.segments.os.open", full)
    with pytest.raises(OSError, match=r"No space left on device: .*samples"):
        buffer.add(numbered(*range(12, 20)), rate=1.0)
    monkeypatch.undo()
    assert taken(buffer, 20) == list(range(20))


def test_what_an_earlier_process_has_left_is_removed(tmp_path: Path) -> None:
    PersistingBuffer(1, SegmentFolder(str(tmp_path / "stream"))).add(numbered(*range(9)), rate=1.0)
    buffer = PersistingBuffer(1, SegmentFolder(str(tmp_path / "stream")))
    assert len(buffer) == 0 and not (tmp_path / "stream").exists()
