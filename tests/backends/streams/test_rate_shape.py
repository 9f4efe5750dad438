"""The samples of a replay up to any time are the integral of its rate."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.streams.rate_shape import BURSTS, CONSTANT, SHAPES, STEP, WAVE, RateShape


@pytest.mark.parametrize(
    ("shape", "seconds", "elapsed"),
    [
        (RateShape(CONSTANT), 7.0, 7.0),
        (RateShape(WAVE, 1.5, 10.0), 10.0, 10.0),
        (RateShape(WAVE, 1.5, 10.0), 5.0, 5.0 + 10.0 * 0.5 / math.pi),
        (RateShape(BURSTS, 5.0, 10.0), 0.5, 2.5),
        (RateShape(BURSTS, 5.0, 10.0), 10.0, 14.0),
        (RateShape(BURSTS, 5.0, 10.0), 20.5, 30.5),
        (RateShape(STEP, 0.1, 30.0), 30.0, 30.0),
        (RateShape(STEP, 0.1, 30.0), 50.0, 32.0),
    ],
)
def test_each_shape_at_known_times(shape: RateShape, seconds: float, elapsed: float) -> None:
    shape.check()
    assert shape.elapsed(seconds) == pytest.approx(elapsed)


@given(
    st.sampled_from(SHAPES), st.floats(0, 2), st.floats(0.1, 100), st.lists(st.floats(0, 1000), min_size=2, max_size=9)
)
def test_no_sample_is_taken_back(shape: str, factor: float, period_s: float, times: list[float]) -> None:
    elapsed = [RateShape(shape, factor, period_s).elapsed(seconds) for seconds in sorted(times)]
    assert all(later >= earlier - 1e-6 for earlier, later in zip(elapsed, elapsed[1:], strict=False))


@pytest.mark.parametrize(
    "shape", [RateShape(WAVE, 2.1), RateShape(STEP, -0.1), RateShape(STEP, math.inf), RateShape(STEP, 1.0, 0.0)]
)
def test_what_no_rate_has_is_refused(shape: RateShape) -> None:
    with pytest.raises(ValueError, match="factor"):
        shape.check()
