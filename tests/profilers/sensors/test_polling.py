"""A poller never blocks a read, counts each answer once and tells why it has none."""

import threading
import time

import pytest

from profilers.file_tree import Unavailable
from profilers.sensors import polling
from profilers.sensors.polling import PolledSensor, Poller
from tests.running import HANG_S, until


class Source:
    """Answers 1.0, 2.0, …; fails while ``broken``; hangs while ``go`` is cleared."""

    def __init__(self):
        self.questions = 0
        self.broken = False
        self.go = threading.Event()
        self.go.set()

    def __call__(self):
        self.go.wait(10.0)
        self.questions += 1
        if self.broken:
            raise Unavailable("no route to host")
        return float(self.questions)


@pytest.fixture
def source():
    source = Source()
    yield source
    source.go.set()


def test_only_the_first_read_waits_for_an_answer(source):
    poller = Poller(source, period_s=60.0)
    assert [poller.newest(), poller.newest()] == [1.0, 1.0]
    assert source.questions == 1
    poller.close()


def test_polling_goes_on_until_close(source):
    before = set(threading.enumerate())
    poller = Poller(source, period_s=0.01)
    poller.newest()
    (thread,) = set(threading.enumerate()) - before
    until(lambda: poller.newest() >= 3.0, lambda: "it asks no more")
    poller.close()
    poller.close()
    thread.join(HANG_S)
    assert not thread.is_alive()


def test_a_read_after_close_starts_polling_again(source):
    poller = Poller(source, period_s=60.0)
    poller.newest()
    poller.close()
    assert poller.newest() == 2.0
    poller.close()


def test_a_failure_is_raised_until_the_next_answer(source):
    source.broken = True
    poller = Poller(source, period_s=0.01)
    with pytest.raises(Unavailable, match="no route to host"):
        poller.newest()
    source.broken = False
    until(lambda: poller._reason is None, lambda: "it asks no more")
    assert poller.newest() >= 2.0
    poller.close()


def test_a_source_that_never_answers_delays_only_the_first_read(source, monkeypatch):
    source.go.clear()
    poller = Poller(source)
    for limit_s in (0.05, 3600.0):  # the second read would wait until the test is given up
        monkeypatch.setattr(polling, "ANSWER_LIMIT_S", limit_s)
        with pytest.raises(Unavailable, match="has not answered within"):
            poller.newest()
    poller.close()


def test_an_outdated_answer_is_unavailable(source, monkeypatch):
    poller = Poller(source, period_s=0.01)
    poller.newest()
    source.go.clear()
    monkeypatch.setattr(polling, "ANSWER_LIMIT_S", 0.05)
    time.sleep(0.2)
    with pytest.raises(Unavailable, match="its last answer is [0-9]+ s old"):
        poller.newest()
    poller.close()


def test_history_has_every_answer_of_a_window_once_and_at_its_own_time(source):
    poller = Poller(source)
    poller.answers.extend([(1.0, 10.0), (2.0, 11.0), (3.0, None), (4.0, 13.0), (5.0, 14.0)])

    def watts(answer):
        if answer is None:
            raise Unavailable("not now")
        return 2 * answer

    sensor = PolledSensor("meter", "wall", poller, watts)
    assert sensor.history(2.0, 4.5) == ([2.0, 4.0], [22.0, 26.0])
    assert sensor.history(6.0, 7.0) == ([], [])
