"""The sending side of a link: messages go out in order, and the rate is what the peer takes."""

import time

import numpy as np
import pytest

from backends.network import send_queue as module
from backends.network.send_queue import SendQueue
from backends.network.throughput_meter import LEAST_BYTES
from backends.protocol.frames import PeerMessage
from backends.strategies.message import dense
from tests.running import until

RATE = 1e6
MESSAGE = dense(np.zeros(50_000, np.float32))
HEAD = PeerMessage("gradient", 0, 1, MESSAGE.head)


class Link:
    """A connection whose socket takes everything at once.

    Time is its own: from ``carry`` on it passes with every look at the link, at RATE bytes/s.
    """

    aborted = False

    def __init__(self) -> None:
        self.sent_bytes = 0
        self._carries = False
        self._now_s = self._empty_s = 0.0

    def perf_counter(self) -> float:
        return self._now_s

    def carry(self) -> None:
        self._carries = True

    def send(self, head, payload) -> None:
        self.sent_bytes = sum(view.nbytes for view in payload)
        self._empty_s = max(self._empty_s, self._now_s) + self.sent_bytes / RATE

    def under_way(self) -> int:
        self._now_s += 0.03 if self._carries else 0.0
        return max(0, int(RATE * (self._empty_s - self._now_s)))

    def quiet_s(self) -> float:
        return max(0.0, self._now_s - self._empty_s)

    def abort(self) -> None:
        self.aborted = True


@pytest.fixture
def link(monkeypatch):
    made = Link()
    monkeypatch.setattr(module, "time", made)
    return made


@pytest.fixture
def gone() -> list[int]:
    return []


@pytest.fixture
def send_queue(link, gone):
    made = SendQueue(lambda: link, lambda head, count: gone.append(head.step))
    yield made
    made.close()


def test_the_rate_is_that_of_the_link_and_not_of_the_socket(send_queue, link, gone) -> None:
    send_queue.put(HEAD, MESSAGE.arrays)
    until(lambda: gone, lambda: "it did not go out")
    assert send_queue.rate is None and send_queue.idle  # its memory may change, though it is under way
    link.carry()
    until(lambda: send_queue.rate is not None, lambda: "nothing was measured")
    assert send_queue.rate == pytest.approx(RATE, rel=0.05)


def test_a_message_does_not_wait_for_the_one_before_to_be_through_and_the_rate_is_known(send_queue, link, gone) -> None:
    for step in range(3):
        send_queue.put(HEAD._replace(step=step), MESSAGE.arrays)
    until(lambda: gone == [0, 1, 2], lambda: "they did not go out")
    assert link.under_way() == 3 * MESSAGE.arrays[0].nbytes
    link.carry()
    until(lambda: send_queue.rate is not None, lambda: "nothing was measured")
    assert send_queue.rate == pytest.approx(RATE, rel=0.05)


def test_a_small_message_tells_nothing(send_queue, gone) -> None:
    send_queue.put(HEAD, dense(np.zeros(LEAST_BYTES // 8, np.float32)).arrays)
    until(lambda: gone, lambda: "it did not go out")
    time.sleep(0.05)
    assert send_queue.rate is None
