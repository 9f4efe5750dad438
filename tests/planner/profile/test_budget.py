"""A budget and what it leaves out, by a clock that is made up."""

from planner.profile.budget import Budget


def test_what_begins_when_the_time_is_over_is_left_out_and_told_in_one_line() -> None:
    times = iter([100.0, 104.0, 104.0, 110.0, 110.0, 111.0, 111.0])
    budget = Budget(10.0, lambda: next(times))
    assert budget.allows("net on a")
    assert not budget.allows("net on b")
    assert not budget.allows("a -> b")
    assert budget.told == (
        "the budget of 10.0 s is spent; run `planner profile` again to measure the rest: a -> b, net on b"
    )
