"""The sending side of a link: messages go out in order, and the rate is what the peer takes."""

import time

import numpy as np
import pytest

from backends.network.send_queue import SendQueue
from backends.network.throughput_meter import LEAST_BYTES
from backends.protocol.frames import PeerMessage
from backends.strategies.message import dense
from tests.running import until

RATE = 1e6
MESSAGE = dense(np.zeros(50_000, np.float32))
HEAD = PeerMessage("gradient", 0, 1, MESSAGE.head)
THROUGH_S = 4 * 50_000 / RATE


class Link:
    """A connection whose socket takes everything at once, and which carries RATE bytes/s."""

    aborted = False

    def __init__(self) -> None:
        self.sent_bytes = 0
        self._empty_s = 0.0

    def send(self, head, payload) -> None:
        self.sent_bytes = sum(view.nbytes for view in payload)
        self._empty_s = max(self._empty_s, time.perf_counter()) + self.sent_bytes / RATE

    def under_way(self) -> int:
        return max(0, int(RATE * (self._empty_s - time.perf_counter())))

    def quiet_s(self) -> float:
        return max(0.0, time.perf_counter() - self._empty_s)

    def abort(self) -> None:
        self.aborted = True


@pytest.fixture
def gone() -> list[float]:
    return []


@pytest.fixture
def send_queue(gone):
    made = SendQueue(Link, lambda head, count: gone.append(time.perf_counter()))
    yield made
    made.close()


def test_the_rate_is_that_of_the_link_and_not_of_the_socket(send_queue, gone) -> None:
    send_queue.put(HEAD, MESSAGE.arrays)
    until(lambda: gone, lambda: "it did not go out")
    assert send_queue.rate is None and send_queue.idle  # its memory may change, though it is under way
    until(lambda: send_queue.rate is not None, lambda: "nothing was measured")
    assert send_queue.rate == pytest.approx(RATE, rel=0.3)


def test_a_message_does_not_wait_for_the_one_before_to_be_through_and_the_rate_is_known(send_queue, gone) -> None:
    for step in range(3):
        send_queue.put(HEAD._replace(step=step), MESSAGE.arrays)
        time.sleep(THROUGH_S / 4)
    until(lambda: len(gone) == 3, lambda: "they did not go out")
    assert gone[2] - gone[0] < 1.5 * THROUGH_S
    assert send_queue.rate == pytest.approx(RATE, rel=0.4)


def test_a_small_message_tells_nothing(send_queue, gone) -> None:
    send_queue.put(HEAD, dense(np.zeros(LEAST_BYTES // 8, np.float32)).arrays)
    until(lambda: gone, lambda: "it did not go out")
    time.sleep(0.05)
    assert send_queue.rate is None
