"""A gradient's time at other batch sizes: 32 images take 0.1 s, and 16 take 60 % of that."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.predict.gradient_times import BatchSizeError, GradientTimes, image_s
from profilers.records.steps import BatchTiming
from profilers.stats import Z95
from tests.planner.profiles import changed, seconds, step

STEADY = step(0.1)


def shaken(full_s: float = 0.1, half_s: float = 0.06) -> GradientTimes:
    """Timings that spread by 10 % at the full batch and by 20 % at the half one."""
    return GradientTimes([step(full_s, spread=0.1, half_batch_s=seconds(half_s, spread=0.2))])


#: Standard errors in seconds of 100 alternating values.
FULL_ERROR_S, HALF_ERROR_S = 0.1 * 0.1 / math.sqrt(99), 0.06 * 0.2 / math.sqrt(99)


@pytest.mark.parametrize(("batch", "expected_s"), [(8, 0.04), (16, 0.06), (24, 0.08), (32, 0.1), (64, 0.18)])
def test_times_follow_the_line_through_half_and_full_batch(batch: int, expected_s: float) -> None:
    assert GradientTimes([STEADY]).at(batch).seconds == pytest.approx(expected_s)


def test_a_full_batch_counts_before_a_half_one_of_the_same_size() -> None:
    other = step(0.2, batch=64, half_batch_s=seconds(0.15))
    for steps in ([STEADY, other], [other, STEADY]):
        assert GradientTimes(steps).at(32).seconds == pytest.approx(0.1)


def curve() -> GradientTimes:
    """An accelerator that 16 images do not fill: 8 take as long."""
    others = (BatchTiming(8, seconds(0.06)), BatchTiming(64, seconds(0.22)))
    return GradientTimes([step(0.1, other_batches=others)])


@pytest.mark.parametrize(
    ("batch", "expected_s"), [(8, 0.06), (12, 0.06), (24, 0.08), (48, 0.16), (64, 0.22), (96, 0.33)]
)
def test_the_curve_bends_at_every_size_that_was_timed(batch: int, expected_s: float) -> None:
    assert curve().sizes == (8, 64)
    assert curve().at(batch).seconds == pytest.approx(expected_s)


def test_the_planned_size_and_its_half_count_before_further_sizes() -> None:
    twice = step(0.2, batch=64, half_batch_s=seconds(0.12), other_batches=(BatchTiming(16, seconds(0.5)),))
    line = GradientTimes([STEADY, twice])
    assert [line.at(batch).seconds for batch in (16, 32, 64)] == pytest.approx([0.06, 0.1, 0.2])


@pytest.mark.parametrize(("half_s", "batch", "expected_s"), [(0.11, 64, 0.1), (0.03, 64, 0.2), (0.03, 8, 0.015)])
def test_more_images_take_no_less_time_and_no_more_an_image(half_s: float, batch: int, expected_s: float) -> None:
    assert GradientTimes([step(0.1, half_batch_s=seconds(half_s))]).at(batch).seconds == pytest.approx(expected_s)


@pytest.mark.parametrize(
    ("batch", "error_s"),
    [(32, FULL_ERROR_S), (16, HALF_ERROR_S), (24, math.hypot(0.5 * FULL_ERROR_S, 0.5 * HALF_ERROR_S))],
)
def test_among_the_profiled_sizes_a_time_errs_as_the_means_do(batch: int, error_s: float) -> None:
    found = shaken().at(batch)
    assert found.error * found.seconds == pytest.approx(error_s)


def test_beyond_them_it_errs_as_slope_and_intercept_do_and_as_far_as_the_fixed_part_may_grow() -> None:
    found = shaken().at(64)
    line_s = math.hypot(3 * FULL_ERROR_S, 2 * HALF_ERROR_S)
    to_proportional = math.log(0.2 / 0.18) / Z95
    assert found.error == pytest.approx(math.hypot(line_s / 0.18, to_proportional))


@pytest.mark.parametrize("batch", [33, 64, 128])
def test_where_time_hardly_changes_with_the_batch_the_interval_reaches_the_proportional_time(batch: int) -> None:
    """As on an accelerator that 32 images do not fill: 128 images may take four times as long."""
    found = GradientTimes([step(0.1, half_batch_s=seconds(0.1))]).at(batch)
    assert found.seconds == pytest.approx(0.1)
    assert found.seconds * math.exp(Z95 * found.error) == pytest.approx(0.1 * batch / 32)


@given(st.floats(0.5, 1.05), st.lists(st.integers(33, 128), min_size=2, max_size=2))
def test_uncertainty_grows_with_the_distance(half: float, batches: list[int]) -> None:
    near, far = (shaken(0.1, 0.1 * half).at(batch).error for batch in sorted(batches))
    assert far >= near * (1 - 1e-9)


@pytest.mark.parametrize(("batch", "least", "most"), [(32, 4, 128), (34, 5, 136)])
def test_the_reach_is_what_can_be_predicted(batch: int, least: int, most: int) -> None:
    line = GradientTimes([step(0.1, batch=batch)])
    assert line.reach == (least, most)
    line.check(least)
    line.check(most)
    for beyond in (least - 1, most + 1):
        with pytest.raises(BatchSizeError):
            line.check(beyond)


def test_one_profiled_size_tells_no_other() -> None:
    line = GradientTimes([changed(STEADY, half_batch_s=seconds(0.1, count=0))])
    assert line.at(32).seconds == pytest.approx(0.1)
    with pytest.raises(BatchSizeError, match="at batch size 32 only"):
        line.at(31)


@pytest.mark.parametrize(("half_s", "expected_s"), [(0.06, 0.04 / 16), (0.11, 0.1 / 32), (0.03, 0.1 / 32)])
def test_one_image_more_costs_the_slope_or_its_part_of_the_whole(half_s: float, expected_s: float) -> None:
    assert image_s(step(0.1, half_batch_s=seconds(half_s))) == pytest.approx(expected_s)
