"""One sentence says what to train on, and one what the nearest alternative costs."""

import pytest

from planner.views.advice import Offer, advice, named

BEST = Offer("tx2 alone", 109.0, 1300.0)
FAST = Offer("tx1 + tx2", 87.0, 1950.0)
FRUGAL = Offer("nano alone", 218.0, 1000.0)


def test_the_fastest_is_told_with_what_it_costs() -> None:
    assert advice(BEST, FAST, BEST, None) == (
        "Train on tx2 alone: 109 s, 1.30 kJ. tx1 + tx2 would take 87.0 s at 1.5 times the energy."
    )


def test_the_most_frugal_is_told_with_how_long_it_takes() -> None:
    assert advice(FAST, FAST, FRUGAL, None) == (
        "Train on tx1 + tx2: 87.0 s, 1.95 kJ. nano alone would need 1.00 kJ and take 2.5 times as long."
    )


def test_of_two_trades_the_one_that_costs_less_is_told() -> None:
    assert "tx1 + tx2" in advice(BEST, FAST, FRUGAL, None)  # 1.20 times the EDP, and 1.54 times
    assert "nano" in advice(BEST, FAST._replace(energy_j=9000.0), FRUGAL, None)


def test_what_saves_less_than_a_tenth_is_no_alternative() -> None:
    near = FAST._replace(time_s=99.0)
    assert advice(BEST, near, BEST, None) == "Train on tx2 alone: 109 s, 1.30 kJ."
    assert advice(BEST, near, BEST, FRUGAL).endswith(" The next best is nano alone: 3.63 min, 1.00 kJ.")


def test_without_watts_only_times_are_told() -> None:
    unknown = [each._replace(energy_j=None) for each in (BEST, FAST)]
    assert advice(*unknown, BEST, None) == "Train on tx2 alone: 109 s. tx1 + tx2 would take 87.0 s."


@pytest.mark.parametrize(("names", "text"), [(["a"], "a alone"), (["a", "b"], "a + b"), (list("abcde"), "5 devices")])
def test_many_devices_are_counted_instead_of_named(names: list[str], text: str) -> None:
    assert named(names) == text
