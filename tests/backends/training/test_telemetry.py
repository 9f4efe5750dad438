"""A member's telemetry has all windows, and the time spent at its end."""

import queue
import threading

import pytest

from backends.data.arrivals import Arrivals
from backends.protocol.events import MemberTelemetry, TimeSpent
from backends.protocol.stream_statistics import StreamStatistics
from backends.training.telemetry import TelemetrySender
from profilers.records.readings import Window
from tests.running import HANG_S

FIRST, LAST = Window(1.0, {}, ()), Window(2.0, {}, ())
NEVER_S = 3600.0

pytestmark = pytest.mark.timeout(20)
STREAM = StreamStatistics(30.0, 32, 320, 2.0, 400, 320, 60, 80, 20, 0, 0)


class Fake:
    """Gives one thing at each turn and another one at its end."""

    def __init__(self, turn, stop):
        self.turn, self.stop = lambda: turn, lambda: stop

    def start(self) -> None:
        pass


def sender(emit, interval_s=NEVER_S):
    return TelemetrySender(emit, interval_s, HANG_S, lambda: Fake(FIRST, LAST))


def test_the_last_window_is_sent_at_the_end_with_the_time_spent_until_then():
    sent = []
    with sender(sent.append) as telemetry:
        telemetry.on_step(TimeSpent(1, 0.5))
        telemetry.on_step(TimeSpent(2, 1.0))
    assert sent == [MemberTelemetry(LAST, TimeSpent(2, 1.0))]


def test_windows_follow_one_another_until_the_end():
    sent = queue.Queue()
    with sender(sent.put, 0.001):
        before = [sent.get(timeout=HANG_S) for _ in range(3)]
    assert before == [MemberTelemetry(FIRST, TimeSpent())] * 3
    assert sent.queue[-1] == MemberTelemetry(LAST, TimeSpent())
    assert [each.window for each in list(sent.queue)[:-1]] == [FIRST] * (sent.qsize() - 1)


def test_a_failure_in_the_member_does_not_lose_its_last_window():
    sent = []
    with pytest.raises(ZeroDivisionError), sender(sent.append):
        raise ZeroDivisionError
    assert [each.window for each in sent] == [LAST]


def test_a_sensor_that_fails_is_told_and_the_time_spent_goes_on_to_be():
    """Else the device, which trains, would count as lost after some minutes of silence."""

    def fail():
        raise RuntimeError("a library's own error")

    sent, failing = queue.Queue(), Fake(FIRST, LAST)
    failing.turn = fail
    with TelemetrySender(sent.put, 0.001, HANG_S, lambda: failing):
        told = [sent.get(timeout=HANG_S) for _ in range(2)]
    assert [each.window.power[0].reason for each in told] == ["RuntimeError: a library's own error"] * 2


def test_a_sensor_that_hangs_holds_up_no_event_and_its_reading_comes_later():
    sent, hanging, go_on = queue.Queue(), Fake(FIRST, LAST), threading.Event()
    hanging.turn = lambda: go_on.wait(HANG_S) and FIRST
    with TelemetrySender(sent.put, 0.001, 0.01, lambda: hanging):
        told = [sent.get(timeout=HANG_S) for _ in range(3)]
        go_on.set()
        while sent.get(timeout=HANG_S).window != FIRST:
            pass
    assert {each.window.power[0].reason for each in told} == {"reading them takes more than 5 s"}


def test_a_sensor_that_hangs_at_the_end_does_not_hold_it_up():
    go_on = threading.Event()
    stuck = Fake(FIRST, LAST)
    stuck.stop = go_on.wait
    sent = []
    with TelemetrySender(sent.append, NEVER_S, 0.05, lambda: stuck):
        pass
    go_on.set()
    assert [each.window.duration_s for each in sent] == [0.0]


def test_the_figures_of_a_stream_of_samples_are_sent_too():
    sent, arrivals = [], Arrivals()
    arrivals.statistics = lambda: STREAM
    with TelemetrySender(sent.append, NEVER_S, HANG_S, lambda: Fake(FIRST, LAST), arrivals=arrivals):
        pass
    assert [each.stream for each in sent] == [STREAM]
