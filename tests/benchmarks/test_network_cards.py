"""What network cards have carried."""

import pytest

from benchmarks.racing.network_cards import Count, Sample, count, sent, traffic

NET_DEV = """\
Inter-|   Receive                  |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo
    lo:  999999       7    0    0    0     0          0         0   999999       7    0    0
  eth0: 123456      89    0    0    0     0          0         0  7890123     456    0    1
"""


def test_a_card_is_read_by_its_name_and_loopback_is_none() -> None:
    assert count(NET_DEV, "eth0") == Count(123456, 7890123)


def test_what_is_sent_is_summed_over_all_cards_and_counted_once() -> None:
    before = {"a": Count(10, 20), "b": Count(30, 40)}
    after = {"a": Count(1010, 520), "b": Count(530, 1040)}
    assert sent(before, after) == 500 + 1000


def test_the_busiest_direction_of_any_card_counts_for_the_line() -> None:
    first = Sample(1.0, 100.0, {"a": Count(0, 0), "b": Count(0, 0)})
    last = Sample(3.0, 1000.0, {"a": Count(900, 100), "b": Count(100, 1600)})
    found = traffic(first, last, {"a": 1000.0, "b": 1000.0})
    assert found.seconds == 2.0
    assert found.payload_bytes == 900.0
    assert found.sent_bytes == 1700
    assert found.line_share == pytest.approx(0.8)
