"""What runs come to together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.racing.figures import Mean, entries, payload_ratio, sooner, spread, times_as_long
from benchmarks.racing.records import Finished

from .made import TRAFFIC, failed, outcome, run, trial


def test_the_interval_of_three_values_is_students() -> None:
    found = Mean.of([9.0, 10.0, 11.0])
    assert found.value == pytest.approx(10.0)
    assert found.half == pytest.approx(4.303 / 3**0.5, rel=1e-3)  # t of two degrees of freedom, standard deviation 1


def test_a_single_value_has_no_interval() -> None:
    assert Mean.of([2.0]) == Mean(2.0, None, 1)
    assert str(Mean.of([2.0])) == "2"


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=10), st.floats(0.1, 10.0))
def test_an_interval_grows_with_the_unit(values: list[float], unit: float) -> None:
    one, other = Mean.of(values), Mean.of([unit * value for value in values])
    assert one.half is not None
    assert other.half == pytest.approx(unit * one.half, rel=1e-6, abs=1e-6)


def test_trials_are_no_part_of_a_table_and_order_is_kept() -> None:
    found = entries([trial("slow", 0.01, 0.9), run("slow"), run("fast"), run("slow", 1)])
    assert [(entry.strategy, len(entry.outcomes)) for entry in found] == [("slow", 2), ("fast", 1)]


def test_what_failed_is_told_and_spoils_the_time_to_the_target() -> None:
    (entry,) = entries([run("fast"), failed("fast")])
    assert entry.errors == ("training diverged",)
    assert entry.target_s is None and entry.reached == 1


def test_a_target_that_one_seed_did_not_reach_has_no_mean_time() -> None:
    (entry,) = entries([run("fast"), run("fast", 1, target_s=None)])
    assert entry.target_s is None and entry.reached == 1


def _entry(*runs: Finished):
    (found,) = entries(runs)
    return found


def test_sooner_is_the_others_seconds_over_ones_own() -> None:
    fast, slow = _entry(run("fast", target_s=5.0)), _entry(run("slow", target_s=20.0))
    never = _entry(run("slow", target_s=None))  # takes more than the 20 s of its run
    assert [str(sooner(*pair)) for pair in ((fast, slow), (fast, never), (never, fast))] == [
        "4.00", "at least 4.00", "at most 0.25",
    ]  # fmt: skip
    assert sooner(never, never) is None
    assert sooner(fast, _entry(run("slow", seed=1))) is None


def test_seconds_are_compared_seed_by_seed_and_the_interval_is_that_of_the_logarithms() -> None:
    one = _entry(run("one", 0, target_s=4.0), run("one", 1, target_s=36.0))
    other = _entry(run("other", 0, target_s=4.0), run("other", 1, target_s=4.0), run("other", 2, target_s=1.0))
    found = times_as_long(one, other)
    assert found is not None and found.low is not None and found.high is not None
    assert found.value == pytest.approx(3.0)
    assert found.high / found.value == pytest.approx(3.0**12.706, rel=1e-3)  # t of one degree of freedom
    assert found.low * found.high == pytest.approx(9.0)


def test_one_seed_has_a_ratio_without_an_interval_and_who_missed_the_target_has_none() -> None:
    one, never = _entry(run("one", target_s=6.0)), _entry(run("other", target_s=None))
    assert str(times_as_long(one, _entry(run("other", target_s=4.0)))) == "1.50"
    assert times_as_long(one, never) is None


def test_workers_with_the_same_weights_have_no_spread() -> None:
    assert spread(outcome()) is None
    assert spread(outcome(accuracies={"a": 0.5, "b": 0.75, "c": 0.7})) == 0.25


def test_cards_are_held_against_the_payload_where_there_is_one() -> None:
    assert payload_ratio(outcome(traffic=TRAFFIC)) == pytest.approx(1.03)
    assert payload_ratio(outcome(traffic=TRAFFIC._replace(payload_bytes=0.0))) is None
    assert payload_ratio(outcome()) is None
