"""A replay delivers samples at its rate, from any offset on, and stops where it is told to."""

import pytest

from backends.streams.rate_shape import STEP, RateShape
from backends.streams.replay import ReplaySettings, ReplaySource
from tests.hand_clock import HandClock


def begun(settings: ReplaySettings, offset: int = 0, count: int = 10) -> tuple[ReplaySource, HandClock]:
    clock = HandClock()
    source = ReplaySource(count, lambda position: b"%d" % position, settings, 3, clock, clock.pause)
    source.begin(offset)
    return source, clock


def delivered(source: ReplaySource, clock: HandClock, until_s: float) -> list[tuple[int, bytes]] | None:
    """What arrives up to a time."""
    found: list[tuple[int, bytes]] = []
    while True:
        is_time = clock.now_s >= until_s - 1e-9
        records = source.read(0.0 if is_time else until_s - clock.now_s)
        found += records or []
        if records is None or (is_time and not records):
            return found


def test_so_many_samples_arrive_in_a_second() -> None:
    source, clock = begun(ReplaySettings(rate=4.0))
    assert source.read(0.0) == []
    assert len(delivered(source, clock, 1.0)) == 4
    assert len(delivered(source, clock, 3.5)) == 10


def test_an_epoch_has_every_sample_once_and_the_next_another_order() -> None:
    source, clock = begun(ReplaySettings(rate=10.0))
    clock.pause(2.0)
    payloads = [record.payload for record in source.read(0.0)]
    assert sorted(payloads[:10]) == sorted(payloads[10:]) == sorted(b"%d" % n for n in range(10))
    assert payloads[:10] != payloads[10:]


@pytest.mark.parametrize("offset", [1, 9, 10, 37])
def test_it_goes_on_at_an_offset_with_the_sample_that_had_it(offset: int) -> None:
    whole, clock = begun(ReplaySettings(rate=50.0))
    clock.pause(1.0)
    part, later = begun(ReplaySettings(rate=50.0), offset)
    later.pause(1.0 - offset / 50.0)
    assert part.read(0.0) == whole.read(0.0)[offset:]


def test_its_rate_may_change_and_it_may_stop() -> None:
    source, clock = begun(ReplaySettings(10.0, RateShape(STEP, 0.1, 2.0), stops_s=12.0))
    assert len(delivered(source, clock, 2.0)) == 20
    assert len(delivered(source, clock, 100.0)) == 10
    assert source.read(0.0) is None


def test_every_so_many_th_sample_is_damaged() -> None:
    source, clock = begun(ReplaySettings(8.0, malformed=4))
    clock.pause(1.0)
    assert [len(record.payload) for record in source.read(0.0)] == [1, 1, 1, 0] * 2
