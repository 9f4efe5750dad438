"""A member's figures are means over its steps, and survive its connections."""

import pytest

from backends.hosting.member_stats import MemberStats


class Connection:
    sent_bytes, received_bytes = 3, 4


def test_the_loss_is_smoothed_and_the_staleness_a_mean() -> None:
    stats = MemberStats()
    stats.count_step(2.0, 0)
    stats.count_step(1.0, 3)
    assert stats.summary().loss == pytest.approx(1.9)
    assert (stats.summary().steps, stats.summary().staleness) == (2, 1.5)


def test_bytes_are_moved_from_the_connection_and_counted_once() -> None:
    stats, connection = MemberStats(), Connection()
    stats.count_bytes(connection)
    stats.count_bytes(connection)
    assert stats.summary().bytes == 7
