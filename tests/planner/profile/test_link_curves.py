"""The profile of a link after a probe. Exact cases."""

from typing import Any

import pytest

from backends.protocol.events import MessageTimes
from planner.profile import link_curves
from profilers.records.links import CurvePoint, LinkProfile, LinkThroughput
from profilers.records.readings import Samples


def curve(scale: float = 1.0, sizes: tuple[int, ...] = (1000, 4000), **others: Any) -> MessageTimes:
    """A curve of 1 µs a byte with 0.1 and 0.2 µs of processor time, times ``scale``."""
    points = [
        CurvePoint(
            message_bytes=size,
            seconds=Samples("s", (1e-6 * size * scale,) * 2, (3e-6 * size * scale,)),
            send_cpu_s=1e-7 * size * scale,
            receive_cpu_s=2e-7 * size * scale,
        )
        for size in sizes
    ]
    return MessageTimes((1e-4 * scale,), tuple(points), **others)


def link(**options: Any) -> LinkProfile:
    return link_curves.link_profile("a", "b", LinkThroughput("python", (9.0, 1.0, 2.0, 3.0, 4.0)), curve(**options))


def test_the_first_fifth_of_the_rates_is_no_part_of_the_goodput() -> None:
    made = link(send_stolen_cpu_s=1e-9, receive_stolen_cpu_s=None)
    assert (made.source, made.target, made.tool) == ("a", "b", "python")
    assert (made.bytes_per_s.values, made.bytes_per_s.warmup) == ((1.0, 2.0, 3.0, 4.0), (9.0,))
    assert [point.message_bytes for point in made.curve] == [1000, 4000]
    assert made.curve[1].seconds.values == (0.004, 0.004)
    assert (made.send_cpu_s, made.receive_cpu_s) == pytest.approx((1e-7, 2e-7))
    assert (made.send_stolen_cpu_s, made.receive_stolen_cpu_s) == (1e-9, None)
