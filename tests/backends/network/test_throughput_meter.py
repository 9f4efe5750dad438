"""The rate of a link, from what was sent and what is still under way."""

import pytest

from backends.network.throughput_meter import LEAST_BYTES, TAIL_BYTES, ThroughputMeter


def sent(meter: ThroughputMeter, at_s: float, took_s: float, left: int = 0, quiet_s: float = 0.0) -> bool:
    """A megabyte is sent; so much later, ``left`` bytes are under way. Whether the link is idle."""
    meter.begin(at_s)
    meter.sent(1_000_000)
    idle = meter.idle(left)
    meter.update_rate(at_s + took_s, quiet_s)
    return idle


def test_what_has_arrived_over_the_time_since_the_link_was_idle() -> None:
    meter = ThroughputMeter()
    assert not sent(meter, 10.0, 2.0, left=400_000)
    assert meter.rate == pytest.approx(300_000)


@pytest.mark.parametrize(("took_s", "quiet_s", "counts_s"), [(2.0, 0.5, 1.5), (2.0, 2.0, 0.01), (0.001, 0.001, 0.001)])
def test_the_time_since_the_last_acknowledgement_does_not_count(took_s: float, quiet_s: float, counts_s: float) -> None:
    meter = ThroughputMeter()
    sent(meter, 10.0, took_s, quiet_s=quiet_s)
    assert meter.rate == pytest.approx(1_000_000 / counts_s)


def test_what_is_under_way_takes_as_long_as_what_has_arrived() -> None:
    meter = ThroughputMeter()
    meter.begin(10.0)
    meter.sent(1_000_000)
    meter.idle(1_000_000)
    assert meter.left_s(11.0) == pytest.approx(1.0)  # nothing has arrived, so later once more
    meter.idle(750_000)
    assert meter.left_s(12.0) == pytest.approx(2.0)  # of 6, for it may have begun late
    meter.idle(250_000)
    assert meter.left_s(13.0) == pytest.approx(1.0)
    meter.idle(0)
    assert meter.left_s(12.0) == 0.0


def test_messages_that_follow_before_the_link_is_idle_count_together() -> None:
    meter = ThroughputMeter()
    for at_s, left in ((0.0, 600_000), (1.0, 1_000_000)):
        meter.begin(at_s)
        meter.sent(1_000_000)
        meter.idle(left)
    meter.update_rate(2.0)
    assert meter.rate == pytest.approx(500_000)


def test_a_rate_that_changes_is_followed_slowly() -> None:
    meter = ThroughputMeter()
    for at_s, took_s in ((0.0, 1.0), (10.0, 2.0)):
        sent(meter, at_s, took_s)
    assert meter.rate == pytest.approx(0.8 * 1_000_000 + 0.2 * 500_000)


@pytest.mark.parametrize(("count", "left"), [(LEAST_BYTES, 0), (LEAST_BYTES + TAIL_BYTES, TAIL_BYTES)])
def test_too_little_tells_nothing(count: int, left: int) -> None:
    meter = ThroughputMeter()
    meter.begin(0.0)
    meter.sent(count)
    meter.idle(left)
    meter.update_rate(1.0)
    assert meter.rate is None
