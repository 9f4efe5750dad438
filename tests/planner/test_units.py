"""Quantities as text: three digits, a prefix and a unit."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.units import bytes_text, counted, joules, number, percent, seconds, watts


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0 W"),
        (0.0012, "0.00120 W"),
        (9.996, "10.0 W"),
        (12.34, "12.3 W"),
        (123.4, "123 W"),
        (999.4, "999 W"),
        (999.6, "1.00 kW"),
        (-1500.0, "-1.50 kW"),
        (2.5e6, "2.50 MW"),
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


def test_an_unknown_value_is_a_dash() -> None:
    assert {show(None) for show in (number, seconds, percent, watts, joules, bytes_text)} == {"-"}


def test_units_follow_the_number() -> None:
    assert (joules(1234.0), bytes_text(5_350_000), number(3.14159)) == ("1.23 kJ", "5.35 MB", "3.14")
    assert (percent(0.0746), percent(0.0746, 0), percent(1.0)) == ("7.5 %", "7 %", "100.0 %")


@given(st.floats(min_value=1e-3, max_value=1e20))
def test_a_number_reads_back_to_three_digits(value: float) -> None:
    digits, _, prefix = number(value).partition(" ")
    scale = 10.0 ** (3 * " kMGTPE".index(prefix or " "))
    assert math.isclose(float(digits) * scale, value, rel_tol=0.0051)


def test_one_thing_is_not_several() -> None:
    assert [counted(number, "file") for number in (0, 1, 2)] == ["0 files", "1 file", "2 files"]
