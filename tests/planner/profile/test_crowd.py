"""What counts is timed while all of a crowd make steps, and none leaves the others alone."""

from planner.profile.crowd import Crowd


def test_all_step_when_each_has_begun_or_will_not() -> None:
    crowd = Crowd("ab")
    crowd.steps("a")
    assert not crowd.all_step
    crowd.end("b")
    assert crowd.all_step


def test_it_is_complete_when_all_have_ended() -> None:
    crowd = Crowd("ab")
    for name in "ab":
        crowd.steps(name)
    crowd.end("b")
    assert crowd.all_step and not crowd.complete
    crowd.end("a")
    assert crowd.complete
