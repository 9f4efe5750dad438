"""The profile of a link after one and several probes. Exact cases."""

from typing import Any

import pytest

from backends.protocol.events import MessagePoint, MessageTimes
from planner.profile import link_curves
from profilers.goodput import LinkThroughput
from profilers.machine_speed import LOOP
from profilers.records.links import LinkProfile
from profilers.records.readings import MachineSpeed


def curve(scale: float = 1.0, sizes: tuple[int, ...] = (1000, 4000), **others: Any) -> MessageTimes:
    """A curve of 1 µs a byte with 0.1 and 0.2 µs of processor time, times ``scale``."""
    points = [
        MessagePoint(
            message_bytes=size,
            seconds=(1e-6 * size * scale,) * 2,
            warmup=(3e-6 * size * scale,),
            send_cpu_s=1e-7 * size * scale,
            receive_cpu_s=2e-7 * size * scale,
        )
        for size in sizes
    ]
    return MessageTimes((1e-4 * scale,), tuple(points), **others)


def link(**options: Any) -> LinkProfile:
    return link_curves.first("a", "b", LinkThroughput("python", (9.0, 1.0, 2.0, 3.0, 4.0)), curve(**options))


def test_the_first_probe_of_a_link() -> None:
    made = link(send_stolen_cpu_s=1e-9, receive_stolen_cpu_s=None)
    assert (made.source, made.target, made.tool, made.repeats) == ("a", "b", "python", 1)
    assert (made.bytes_per_s.values, made.bytes_per_s.warmup) == ((1.0, 2.0, 3.0, 4.0), (9.0,))
    assert [point.message_bytes for point in made.curve] == [1000, 4000]
    assert made.curve[1].seconds.values == (0.004, 0.004)
    assert (made.send_cpu_s, made.receive_cpu_s) == pytest.approx((1e-7, 2e-7))
    assert (made.send_stolen_cpu_s, made.receive_stolen_cpu_s) == (1e-9, None)
    assert link_curves.unchecked(made)


def test_processor_seconds_are_the_mean_of_all_probes_and_times_are_appended() -> None:
    twice = link_curves.pooled(link(), curve(scale=1.5))
    assert twice.curve[1].seconds.values == pytest.approx((0.004, 0.004, 0.006, 0.006))
    assert twice.curve[1].seconds.warmup == pytest.approx((0.012, 0.018))
    assert twice.latency_s.values == pytest.approx((1e-4, 1.5e-4))
    assert (twice.send_cpu_s, twice.receive_cpu_s) == pytest.approx((1.25e-7, 2.5e-7))
    assert not link_curves.unchecked(twice)
    thrice = link_curves.pooled(twice, curve(scale=3.5))
    assert thrice.repeats == 3
    assert thrice.send_cpu_s == pytest.approx(2e-7)  # the mean of 1, 1.5 and 3.5


def test_speeds_of_both_ends_are_joined_over_all_probes() -> None:
    slow, fast = (MachineSpeed(seconds, None, 10, loop=LOOP) for seconds in (3e-4, 1e-4))
    once = link(send_speed=slow, receive_speed=fast)
    assert (once.send_speed, once.receive_speed) == (slow, fast)
    twice = link_curves.pooled(once, curve(send_speed=slow, receive_speed=None))
    assert twice.send_speed is not None and (twice.send_speed.loop_s, twice.send_speed.rounds) == (3e-4, 20)
    assert twice.receive_speed is not None and (twice.receive_speed.loop_s, twice.receive_speed.rounds) == (1e-4, 10)


def test_a_size_that_a_later_probe_left_out_stays_as_it_was() -> None:
    again = link_curves.pooled(link(), curve(scale=2.0, sizes=(1000,)))
    assert again.curve[1] == link().curve[1]
    assert again.curve[0].send_cpu_s == pytest.approx(1.5e-4)
    assert again.send_cpu_s == link().send_cpu_s


def test_stolen_cpu_is_the_mean_of_the_probes_that_measured_it() -> None:
    again = curve(send_stolen_cpu_s=3e-9, receive_stolen_cpu_s=4e-9)
    both = link_curves.pooled(link(send_stolen_cpu_s=1e-9, receive_stolen_cpu_s=None), again)
    assert both.send_stolen_cpu_s == pytest.approx(2e-9)
    assert both.receive_stolen_cpu_s == 4e-9
    assert link_curves.pooled(link(send_stolen_cpu_s=1e-9), curve()).send_stolen_cpu_s == 1e-9
    assert link_curves.pooled(link(), curve()).send_stolen_cpu_s is None


def test_a_link_from_before_repeats_were_counted_is_not_probed_again() -> None:
    assert not link_curves.unchecked(link()._replace(repeats=0))
