"""A member's telemetry has all windows, and the time spent at its end."""

import queue

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
    return TelemetrySender(emit, interval_s, lambda: Fake(FIRST, LAST))


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


def test_the_figures_of_a_stream_of_samples_are_sent_too():
    sent, arrivals = [], Arrivals()
    arrivals.statistics = lambda: STREAM
    with TelemetrySender(sent.append, NEVER_S, lambda: Fake(FIRST, LAST), arrivals=arrivals):
        pass
    assert [each.stream for each in sent] == [STREAM]
