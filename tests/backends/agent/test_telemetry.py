"""A member's telemetry has every window of its sampler, and the time spent at its end."""

import queue

import pytest

from backends.agent.telemetry import TelemetrySender
from backends.protocol.events import MemberTelemetry, TimeSpent
from profilers.records import Window
from tests.running import HANG_S

FIRST, LAST = Window(1.0, {}, ()), Window(2.0, {}, ())
NEVER_S = 3600.0

pytestmark = pytest.mark.timeout(20)


class FakeSampler:
    """Gives FIRST at each turn and LAST at its end."""

    def start(self) -> None:
        pass

    def turn(self) -> Window:
        return FIRST

    def stop(self) -> Window:
        return LAST


def test_the_last_window_is_sent_at_the_end_with_the_time_spent_until_then():
    sent = []
    with TelemetrySender(sent.append, NEVER_S, FakeSampler) as telemetry:
        telemetry.on_step(TimeSpent(1, 0.5))
        telemetry.on_step(TimeSpent(2, 1.0))
    assert sent == [MemberTelemetry(LAST, TimeSpent(2, 1.0))]


def test_a_member_that_makes_no_step_still_sends_its_sensors():
    sent = []
    with TelemetrySender(sent.append, NEVER_S, FakeSampler):
        pass
    assert sent == [MemberTelemetry(LAST, TimeSpent())]


def test_windows_follow_one_another_until_the_end():
    sent = queue.Queue()
    with TelemetrySender(sent.put, 0.001, FakeSampler):
        before = [sent.get(timeout=HANG_S) for _ in range(3)]
    assert before == [MemberTelemetry(FIRST, TimeSpent())] * 3
    assert sent.queue[-1] == MemberTelemetry(LAST, TimeSpent())
    assert [each.window for each in list(sent.queue)[:-1]] == [FIRST] * (sent.qsize() - 1)


def test_a_failure_in_the_member_does_not_lose_its_last_window():
    sent = []
    with pytest.raises(ZeroDivisionError), TelemetrySender(sent.append, NEVER_S, FakeSampler):
        raise ZeroDivisionError
    assert [each.window for each in sent] == [LAST]
