"""Speeds at several times are joined round by round, and compared by the time of the loop."""

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.profile.machine_speed import joined_speed, slowdown
from profilers.machine_speed import LOOP, uninterrupted_s
from profilers.records.readings import MachineSpeed

rounds = st.lists(st.floats(1e-4, 1e-1), min_size=1, max_size=8)


def of(values, **others):
    """A measurement whose rounds took these seconds."""
    spread = statistics.stdev(values) if len(values) > 1 else None
    of_rounds = {"loop": LOOP, **others}
    return MachineSpeed(uninterrupted_s(values), spread, len(values), taken_s=tuple(values), **of_rounds)


def kept(speed):
    """The same without single rounds, as files hold it."""
    return speed._replace(taken_s=())


@given(st.lists(rounds, min_size=1, max_size=5))
def test_several_times_count_by_all_their_rounds(times):
    found, every = joined_speed(map(of, times)), [value for values in times for value in values]
    assert found is not None and found.rounds == len(every)
    assert found.loop_s == pytest.approx(uninterrupted_s(every))
    if len(every) > 1:
        assert found.stdev_s == pytest.approx(statistics.stdev(every), abs=1e-9)


@given(st.lists(st.floats(1e-4, 1e-1), min_size=2, max_size=8), st.integers(3, 20))
def test_half_of_the_rounds_may_take_far_longer(values, factor):
    found = joined_speed([of(values), of([factor * max(values) for _ in values])])
    assert found is not None and (1 - 1e-9) * min(values) <= found.loop_s <= (1 + 1e-9) * max(values)


def test_a_time_whose_rounds_are_not_kept_counts_by_their_number():
    found = joined_speed([kept(of([0.002] * 6)), of([0.005, 0.005])])
    assert found is not None and (found.loop_s, found.rounds) == (0.002, 8)


def test_rounds_of_an_old_loop_count_as_they_were_told():
    old = of([0.002, 0.003], loop=3)._replace(loop_s=0.002)
    found = joined_speed([old])
    assert found is not None and (found.loop_s, found.rounds, found.loop) == (0.002, 2, 3)


def test_rounds_of_the_former_loop_are_counted_by_its_own_limit():
    found = joined_speed([of([0.002, 0.002, 0.0036], loop=4), of([0.002], loop=4)])
    assert found is not None and (found.loop_s, found.rounds, found.loop) == (0.002, 4, 4)


def test_times_without_a_round_do_not_count():
    assert joined_speed([None, MachineSpeed(None, None, 0), of([0.002])]) == kept(of([0.002]))
    assert joined_speed([None, MachineSpeed(None, None, 0)]) is None


def test_lost_time_is_the_mean_of_the_times_that_tell_it():
    found = joined_speed([of([1.0], stolen_share=0.2), of([1.0]), of([1.0], stolen_share=0.4, throttled_share=0.5)])
    assert found is not None and found.stolen_share == pytest.approx(0.3) and found.throttled_share == 0.5


def test_a_machine_is_slower_by_as_much_as_its_loop_takes_longer():
    assert slowdown(of([0.003]), of([0.002])) == pytest.approx(1.5)


def test_times_of_different_loops_are_neither_joined_nor_compared():
    older, newer = of([0.004], loop=1), of([0.002], loop=2)
    assert joined_speed([older, newer]) == kept(newer)
    assert slowdown(newer, older) is None


@pytest.mark.parametrize("unknown", [None, MachineSpeed(None, None, 0)])
def test_where_either_speed_is_unknown_so_is_the_slowdown(unknown):
    assert slowdown(unknown, of([0.002])) is None
    assert slowdown(of([0.002]), unknown) is None
