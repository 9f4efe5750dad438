"""A crowd is complete when none of those that have begun needs the others any more."""

from planner.profile.crowd import Crowd


def test_it_is_complete_when_all_that_have_begun_are_timed() -> None:
    crowd = Crowd()
    crowd.begin("a")
    crowd.begin("b")
    crowd.end("b")
    assert not crowd.complete
    crowd.end("a")
    assert crowd.complete
