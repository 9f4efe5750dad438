"""Which of several failed ranks is the cause. Times are made up."""

from planner.launch.failure_cause import CAUSE_S, FirstFailure

RANKS = ("a", "b", "c")
RAISED = "Traceback (most recent call last):"


def test_a_rank_that_ends_without_an_exception_is_the_cause_at_once() -> None:
    failure = FirstFailure()
    failure.printed("b", RAISED, 1.0)
    failure.ended("a", True, 2.0)
    assert failure.cause(RANKS, 2.0) == "a"


def test_the_rank_whose_exception_came_first_is_waited_for() -> None:
    failure = FirstFailure()
    failure.printed("b", RAISED, 1.0)
    failure.printed("a", RAISED, 1.5)
    failure.ended("a", True, 2.0)
    assert failure.cause(RANKS, 2.0) is None
    failure.ended("b", True, 2.5)
    assert failure.cause(RANKS, 2.5) == "b"


def test_a_rank_that_handled_its_exception_is_waited_for_no_longer_than_a_moment() -> None:
    failure = FirstFailure()
    failure.printed("b", RAISED, 1.0)
    failure.printed("a", RAISED, 1.5)
    failure.ended("a", True, 2.0)
    assert failure.cause(RANKS, 2.0 + CAUSE_S) == "a"


def test_of_several_exceptions_of_a_rank_the_last_one_ended_it() -> None:
    failure = FirstFailure()
    failure.printed("b", RAISED, 1.0)  # handled
    failure.printed("a", RAISED, 2.0)
    failure.printed("b", RAISED, 2.1)
    failure.ended("b", True, 3.0)
    failure.ended("a", True, 3.1)
    assert failure.cause(RANKS, 3.1) == "a"
