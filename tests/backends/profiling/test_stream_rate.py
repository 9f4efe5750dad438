"""The samples that arrive within 10 s after the first one are counted.

The clock moves by hand.
"""

import math
from pathlib import Path
from types import SimpleNamespace

import pytest

from backends.profiling.stream_rate import count, watch_stream
from backends.protocol.orders import WatchStream
from backends.streams.directory import DirectorySource, DirectoryWriter
from backends.streams.replay import ReplaySettings, ReplaySource
from backends.streams.source import SampleSource, StreamRecord
from profilers.records.readings import StreamRate
from tests.backends.stream_sources import records
from tests.hand_clock import HandClock

#: Samples of these tests have so many bytes.
BYTES = 5


class Timetable(SampleSource):
    """Delivers samples at given times: so many at each; then it is silent, or at its end.

    gone: from when to when it cannot be reached.
    """

    def __init__(
        self, clock: HandClock, times: dict[float, int], ends: bool = False, gone: tuple[float, float] = (0.0, 0.0)
    ) -> None:
        self._clock = clock
        self._due = sorted(times.items())
        self._ends = ends
        self._gone = gone
        self.begun_at_end = False

    def require_reached(self) -> None:
        raise AssertionError("its order looks, and a count does not")

    def begin(self, offset: int) -> None:
        raise AssertionError("a run begins, a count does not")

    def begin_at_end(self) -> None:
        self.begun_at_end = True

    def read(self, wait_s: float) -> list[StreamRecord] | None:
        if self._gone[0] <= self._clock() < self._gone[1]:
            raise OSError("nobody listens there")
        if not self._due:
            self._clock.pause(wait_s)
            return None if self._ends else []
        at_s, number = self._due[0]
        if at_s > self._clock() + wait_s:
            self._clock.pause(wait_s)
            return []
        del self._due[0]
        self._clock.now_s = max(self._clock(), at_s)
        return [StreamRecord(0, b"x" * BYTES)] * number

    def commit(self, offset: int) -> None:
        raise AssertionError("nothing is committed")

    def close(self) -> None: ...


def counted(
    times: dict[float, int], ends: bool = False, gone: tuple[float, float] = (0.0, 0.0), patience_s: float = 30.0
) -> StreamRate:
    clock = HandClock()
    source = Timetable(clock, times, ends, gone)
    found = count(source, 10.0, patience_s, pause=clock.pause, clock=clock)
    assert source.begun_at_end
    return found


def test_what_arrives_after_the_first_sample_counts() -> None:
    """One at 3 s; then 20 in each second."""
    steady = {4.5 + second: 20 for second in range(10)}
    assert counted({3.0: 1, **{at - 1: number for at, number in steady.items()}}) == StreamRate(20.0, 0.0, 10.0, BYTES)


def test_the_error_is_that_of_the_mean_of_ten_counts() -> None:
    """10 and 30 by turns: a standard deviation of 10 sqrt(10 / 9), over 20 and sqrt(10)."""
    found = counted({1.0: 1, **{1.5 + second: 10 + 20 * (second % 2) for second in range(10)}})
    assert (found.rate, found.error) == (20.0, pytest.approx(0.5 * math.sqrt(10 / 9) / math.sqrt(10)))


def test_a_stream_without_a_pause_is_counted_all_the_same() -> None:
    clock = HandClock()
    source = ReplaySource(100, lambda _: b"x", ReplaySettings(1e4), 0, clock, clock.pause)

    def running() -> float:
        """The clock, a millisecond later at every look."""
        clock.pause(1e-3)
        return clock()

    found = count(source, 10.0, 30.0, pause=clock.pause, clock=running)
    assert found.rate == pytest.approx(1e4, rel=0.01)


def test_a_source_that_is_gone_for_a_while_delivers_less() -> None:
    assert counted({1.0: 1, 2.0: 30, 8.0: 30}, gone=(4.0, 6.0)).rate == 6.0


@pytest.mark.parametrize(
    ("times", "ends", "gone", "told"),
    [
        ({}, False, (0.0, 0.0), "no sample has arrived for 30 s$"),
        ({}, False, (0.0, 1e9), "no sample has arrived for 31 s: nobody listens there"),
        ({}, True, (0.0, 0.0), "its stream has ended: no more samples arrive"),
        ({1.0: 64, 20.0: 64}, False, (0.0, 0.0), "after the first sample, none arrived for 10 s: too few"),
    ],
)
def test_of_too_few_samples_no_rate_is_told(
    times: dict[float, int], ends: bool, gone: tuple[float, float], told: str
) -> None:
    with pytest.raises((OSError, ValueError), match=told):
        counted(times, ends, gone)


def test_a_directory_begins_with_the_files_that_are_new(tmp_path: Path) -> None:
    writer = DirectoryWriter(str(tmp_path))
    writer.write(records(0, 1, 2))
    source = DirectorySource(str(tmp_path), pause=lambda _: None)
    source.begin_at_end()
    assert source.read(0.0) == []
    writer.write(records(3, 4))
    assert [each.offset for each in source.read(0.0) or []] == [3, 4]
    late = DirectorySource(str(tmp_path / "none"), pause=lambda _: None)
    late.begin_at_end()
    with pytest.raises(FileNotFoundError):
        late.read(0.0)


def test_an_order_names_the_stream_and_the_device(tmp_path: Path) -> None:
    """Of a directory in which nobody puts anything: the patience is over at once."""
    (tmp_path / "pc").mkdir()
    task = SimpleNamespace(stopping=SimpleNamespace(wait=lambda _: True))
    order = WatchStream(f"directory:{tmp_path}/{{device}},patience=0.01", "pc", 10.0)
    with pytest.raises(OSError, match="no sample has arrived"):
        watch_stream(task, order)
