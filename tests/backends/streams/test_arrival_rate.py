"""The rate of a stream is what has arrived within the last seconds."""

import pytest

from backends.streams.arriving import WINDOW_S, ArrivalRate
from tests.hand_clock import HandClock


def test_it_is_known_after_a_second_and_follows_changes() -> None:
    clock = HandClock()
    rate = ArrivalRate(clock)
    assert rate.per_second() is None
    for _ in range(100):
        clock.pause(0.1)
        rate.add(3)
    assert rate.per_second() == pytest.approx(30, rel=0.03)
    clock.pause(WINDOW_S + 1.0)
    assert rate.per_second() == 0.0


def test_before_the_window_is_full_it_is_that_of_the_time_so_far() -> None:
    clock = HandClock()
    rate = ArrivalRate(clock)
    rate.add(8)
    clock.pause(2.0)
    assert rate.per_second() == 4.0
