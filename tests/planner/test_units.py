"""Quantities as text: three digits, a prefix and a unit."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.units import number, seconds, watts


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0 W"),
        (9.996, "10.0 W"),
        (999.4, "999 W"),
        (999.6, "1.00 kW"),
    ],
)
def test_numbers_have_three_digits_and_a_prefix(value: float, shown: str) -> None:
    assert watts(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0 µs"),
        (28.3e-6, "28.3 µs"),
        (0.0856, "85.6 ms"),
        (0.9999, "1.00 s"),
        (119.0, "119 s"),
        (156.0, "2.60 min"),
        (7200.0, "2.0 h"),
        (86_400.0, "24.0 h"),
        (259_200.0, "3.0 days"),
    ],
)
def test_times_have_the_unit_of_their_size(value: float, shown: str) -> None:
    assert seconds(value) == shown


@given(st.floats(min_value=1e-3, max_value=1e20))
def test_a_number_reads_back_to_three_digits(value: float) -> None:
    digits, _, prefix = number(value).partition(" ")
    scale = 10.0 ** (3 * " kMGTPE".index(prefix or " "))
    assert math.isclose(float(digits) * scale, value, rel_tol=0.0051)
