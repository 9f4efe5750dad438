import math

import pytest

from planner.predict.message_time import (
    Processor,
    processor_s,
    relative_error,
    standard_error,
    transfer_s,
)
from profilers.records.links import LinkProfile
from profilers.records.readings import Samples
from tests.planner.profiles import curve, link, seconds

CURVE = curve({1_000: 0.002, 10_000: 0.003, 100_000: 0.012})


@pytest.mark.parametrize(
    ("size", "expected_s"),
    [(0, 0.001), (500, 0.0015), (1_000, 0.002), (5_500, 0.0025), (100_000, 0.012), (1_000_000, 0.102)],
)
def test_a_transfer_follows_the_curve_and_its_last_slope(size: int, expected_s: float) -> None:
    assert transfer_s(link("a", "b", latency_s=0.001, curve=CURVE), size) == pytest.approx(expected_s)


@pytest.mark.parametrize(
    ("size", "send_s", "receive_s"),
    [(0, 0.0, 0.0), (500, 0.0005, 0.001), (1_000, 0.001, 0.002), (5_500, 0.002, 0.0035), (20_000, 0.006, 0.01)],
)
def test_the_processor_s_part_follows_the_sizes_and_beyond_them_the_bytes(
    size: int, send_s: float, receive_s: float
) -> None:
    small, large = CURVE[0]._replace(send_cpu_s=0.001, receive_cpu_s=0.002), CURVE[1]
    told = (small, large._replace(send_cpu_s=0.003, receive_cpu_s=0.005))
    measured = link("a", "b", curve=told, send_cpu_s=3e-7, receive_cpu_s=5e-7)
    assert processor_s(measured, size) == pytest.approx(Processor(send_s, receive_s))


def costly(costs_s: dict[int, float]) -> LinkProfile:
    """A link whose receiver needs twice the processor time of its sender."""
    sizes = curve(dict.fromkeys(costs_s, 1.0))
    points = tuple(
        point._replace(send_cpu_s=costs_s[point.message_bytes], receive_cpu_s=2 * costs_s[point.message_bytes])
        for point in sizes
    )
    size = max(costs_s)
    return link("a", "b", curve=points, send_cpu_s=costs_s[size] / size, receive_cpu_s=2 * costs_s[size] / size)


MB = 1 << 20
ON_A_LINE = {1 << 14: 0.0001, MB // 4: 0.00125, MB: 0.002, 4 * MB: 0.005, 16 * MB: 0.017}


@pytest.mark.parametrize(
    ("size", "send_s"),
    [(1 << 13, 0.00005), (1 << 14, 0.0001), (MB // 4, 0.00125), (2 * MB, 0.003), (16 * MB, 0.017), (100 * MB, 0.101)],
)
def test_large_messages_cost_a_fixed_part_and_one_by_the_byte(size: int, send_s: float) -> None:
    assert processor_s(costly(ON_A_LINE), size) == pytest.approx(Processor(send_s, 2 * send_s))


@pytest.mark.parametrize("slow", [MB, 4 * MB, 16 * MB])
def test_a_size_that_was_probed_while_the_machine_was_slow_counts_for_less_than_it_says(slow: int) -> None:
    seen = costly({**ON_A_LINE, slow: 1.3 * ON_A_LINE[slow]})
    assert processor_s(seen, slow).send_s < 1.2 * ON_A_LINE[slow]


def test_large_messages_never_cost_less_than_nothing_nor_smaller_ones_more() -> None:
    falling = costly({MB: 0.004, 2 * MB: 0.003, 4 * MB: 0.002})
    assert 0 < processor_s(falling, MB).send_s == pytest.approx(processor_s(falling, 64 * MB).send_s)


def test_two_large_sizes_make_no_line() -> None:
    assert processor_s(costly({MB: 0.002, 4 * MB: 0.005}), 8 * MB).send_s == pytest.approx(0.01)


def test_of_sizes_without_processor_seconds_the_bytes_count() -> None:
    measured = link("a", "b", curve=CURVE, send_cpu_s=1e-9, receive_cpu_s=2e-9)
    assert processor_s(measured, 5_000) == pytest.approx(Processor(5e-6, 1e-5))


def test_without_a_curve_it_takes_latency_and_bytes_over_rate() -> None:
    assert transfer_s(link("a", "b", rate=1e6, latency_s=0.01), 500_000) == pytest.approx(0.51)


def test_medians_count_so_that_one_slow_message_does_not() -> None:
    points = curve({1_000: 0.002})
    shaken = points[0]._replace(seconds=Samples("s", (0.002, 0.002, 0.002, 0.9)))
    assert transfer_s(link("a", "b", curve=(shaken,)), 1_000) == pytest.approx(0.002)


def test_beyond_a_curve_of_one_point_the_rate_counts() -> None:
    assert transfer_s(link("a", "b", rate=1e6, curve=curve({1_000: 0.002})), 1_001_000) == pytest.approx(1.002)


def test_beyond_a_curve_that_falls_the_rate_counts() -> None:
    falling = curve({1_000: 0.003, 2_000: 0.002})
    assert transfer_s(link("a", "b", rate=1e6, curve=falling), 1_002_000) == pytest.approx(1.002)


def test_a_cap_slows_a_faster_link_and_leaves_a_slower_one() -> None:
    one = link("a", "b", rate=1e6, latency_s=0.1)
    assert transfer_s(one, 500_000, cap_bytes_per_s=5e5) == pytest.approx(1.1)
    assert transfer_s(one, 500_000, cap_bytes_per_s=1e9) == pytest.approx(0.6)


def test_the_standard_error_of_a_mean_is_relative() -> None:
    samples = seconds(2.0, spread=0.1, count=100)
    assert standard_error(samples) == pytest.approx(0.1 / math.sqrt(99))
    assert standard_error(Samples("s", (1.0,))) == 0.0
    assert standard_error(Samples("s", (0.0, 0.0))) == 0.0


def test_a_link_is_as_uncertain_as_its_nearest_message_size() -> None:
    points = curve({1_000: 0.002, 100_000: 0.01})
    shaken = (points[0], points[1]._replace(seconds=seconds(0.01, spread=0.1, count=100)))
    assert relative_error(link("a", "b", curve=shaken), 90_000) == pytest.approx(0.1 / math.sqrt(99))
    assert relative_error(link("a", "b", curve=shaken), 2_000) == 0.0
