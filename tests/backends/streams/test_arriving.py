"""A batch is there when its samples are; a wait ends where they will not come."""

import errno
import threading
from pathlib import Path

import pytest

from backends.data.arrivals import StreamEnded, WaitInterrupted
from backends.streams.arriving import ArrivingSamples
from backends.streams.buffer import PersistingBuffer, SampleBuffer, TruncatingBuffer
from backends.streams.segments import SegmentFolder
from tests.backends.stream_sources import CODEC, NEVER_S, HandSource
from tests.hand_clock import HandClock
from tests.running import HANG_S, until


def arriving(
    source: HandSource, folder: Path, patience_s: float = NEVER_S, buffer: SampleBuffer | None = None
) -> tuple[ArrivingSamples, HandClock]:
    """A stream whose samples are received by hand."""
    clock, segments = HandClock(), SegmentFolder(str(folder / "stream"))
    kept = PersistingBuffer(64, segments) if buffer is None else buffer
    return ArrivingSamples(source, CODEC, kept, patience_s, segments.set_aside, clock), clock


def test_a_wait_lasts_until_the_samples_have_arrived_and_its_seconds_count(tmp_path: Path) -> None:
    source = HandSource()
    stream, clock = arriving(source, tmp_path)
    stream.prepare(0)
    waiting = threading.Thread(target=stream.wait, args=(8,), daemon=True)
    waiting.start()
    source.until = 7
    assert stream.receive(0.0)
    clock.pause(3.0)
    assert waiting.is_alive()
    source.until = 8
    stream.receive(0.0)
    waiting.join(HANG_S)
    assert not waiting.is_alive()
    assert len(stream.take(8)) == 8
    assert stream.waited_s == pytest.approx(3.0, abs=3.0)


def test_the_position_is_behind_the_samples_of_steps_that_were_made(tmp_path: Path) -> None:
    source = HandSource(until=16)
    stream, _ = arriving(source, tmp_path)
    stream.prepare(0)
    stream.receive(0.0)
    first = stream.take(4)
    assert stream.statistics().offset == 0
    assert stream.position().offset == 4
    again = stream.take(4)
    stream.put_back()
    assert (stream.position().offset, stream.take(4)) == (4, again)
    assert again != first
    assert stream.position().offset == 8
    assert (stream.statistics().used, stream.statistics().buffered) == (8, 8)


def test_malformed_samples_are_counted_and_set_aside(tmp_path: Path) -> None:
    source = HandSource(until=8)
    source.damaged = {2, 5}
    stream, _ = arriving(source, tmp_path)
    stream.prepare(0)
    stream.receive(0.0)
    told = stream.statistics()
    assert (told.arrived, told.malformed) == (6, 2)
    assert Path(told.set_aside).read_bytes().count(b"x") == 2


def test_an_ended_stream_still_gives_what_has_arrived_and_then_says_that_it_has_ended(tmp_path: Path) -> None:
    stream, _ = arriving(HandSource(until=8, ends=True), tmp_path)
    stream.prepare(0)
    stream.receive(0.0)
    stream.receive(0.0)
    assert len(stream.take(8)) == 8
    with pytest.raises(StreamEnded, match="the stream has ended, after 8 samples") as ended:
        stream.wait(1)
    assert not ended.value.end.fault


def test_a_silent_source_ends_a_wait_after_some_time_and_the_cause_is_told(tmp_path: Path) -> None:
    source = HandSource()
    stream, clock = arriving(source, tmp_path, patience_s=60.0)
    stream.prepare(0)
    source.trouble = "Connection refused"
    assert not stream.receive(0.0)
    failure: list[StreamEnded] = []

    def wait() -> None:
        try:
            stream.wait(1)
        except StreamEnded as end:
            failure.append(end)

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    until(lambda: clock.pause(30.0) is not None or bool(failure), lambda: "it waits for ever")
    assert "no sample has arrived for" in str(failure[0]) and "Connection refused" in str(failure[0])
    assert failure[0].end.fault


def test_a_source_that_is_there_and_silent_has_ended_without_a_fault_and_is_named(tmp_path: Path) -> None:
    source = HandSource()
    source.name = "/data/camera"
    stream, clock = arriving(source, tmp_path, patience_s=60.0)
    stream.prepare(0)
    stream.receive(0.0)
    ended: list[StreamEnded] = []

    def wait() -> None:
        with pytest.raises(StreamEnded) as found:
            stream.wait(1)
        ended.append(found.value)

    threading.Thread(target=wait, daemon=True).start()
    until(lambda: clock.pause(30.0) is not None or bool(ended), lambda: "it waits for ever")
    assert str(ended[0]).startswith("/data/camera: no sample has arrived for") and not ended[0].end.fault


def test_a_source_that_is_gone_is_read_again_when_it_is_back(tmp_path: Path) -> None:
    source = HandSource(until=4)
    stream, _ = arriving(source, tmp_path)
    stream.prepare(0)
    source.trouble = "Connection refused"
    assert not stream.receive(0.0)
    source.trouble = ""
    assert stream.receive(0.0)
    assert len(stream.take(4)) == 4


def test_a_wait_ends_with_the_run_and_with_the_stream(tmp_path: Path) -> None:
    source = HandSource()
    stream, _ = arriving(source, tmp_path)
    stream.prepare(0)
    with pytest.raises(WaitInterrupted):
        stream.wait(1, lambda: True)
    stream.stop()
    assert source.is_closed
    with pytest.raises(WaitInterrupted):
        stream.wait(1)


def test_a_stopped_stream_still_tells_what_is_in_its_buffer(tmp_path: Path) -> None:
    stream, _ = arriving(HandSource(until=200), tmp_path)
    stream.prepare(0)
    for _ in range(13):
        stream.receive(0.0)
    stream.stop()
    told = stream.statistics()
    assert (told.buffered, told.stored, len(list((tmp_path / "stream").iterdir()))) == (200, 128, 2)
    stream.close()
    assert not (tmp_path / "stream").exists()


def test_truncation_drops_what_a_slow_training_leaves(tmp_path: Path) -> None:
    source = HandSource(until=160)
    stream, clock = arriving(source, tmp_path, buffer=TruncatingBuffer())
    stream.prepare(0)
    clock.pause(2.0)
    for _ in range(10):
        stream.receive(0.0)
    told = stream.statistics()
    assert (told.arrived, told.rate) == (160, 80.0)
    assert told.buffered == 80 and told.dropped == 80
    stream.take(1)
    assert stream.position().offset == 81


def test_a_full_disk_ends_the_stream_after_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    segments = SegmentFolder(str(tmp_path / "stream"))
    source = HandSource(until=64)
    stream, _ = arriving(source, tmp_path, buffer=PersistingBuffer(4, segments))

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "0.samples")

    monkeypatch.setattr(segments, "_write", full)
    stream.prepare(0)
    stream.receive(0.0)
    assert len(stream.take(16)) == 16
    with pytest.raises(StreamEnded, match="No space left on device.*policy=truncate") as ended:
        stream.wait(1)
    assert ended.value.end.fault


def test_a_source_that_fails_for_another_reason_does_not_let_anybody_wait(tmp_path: Path) -> None:
    source = HandSource(until=1)
    source.read = lambda wait_s: 1 / 0
    stream, _ = arriving(source, tmp_path)
    stream.begin(0)
    with pytest.raises(StreamEnded, match="ZeroDivisionError"):
        stream.wait(1)
