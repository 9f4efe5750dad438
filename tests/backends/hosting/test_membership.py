"""Every observer hears of every change of the membership, from one place."""

from hypothesis import given
from hypothesis import strategies as some

from backends.hosting.membership import Membership


class Recorder:
    def __init__(self) -> None:
        self.heard: list[tuple[str, ...]] = []

    def set_members(self, names: tuple[str, ...]) -> None:
        self.heard.append(names)


def test_all_observers_are_told_who_is_there_sorted_by_name() -> None:
    observers = Recorder(), Recorder()
    membership = Membership(*(each.set_members for each in observers))
    membership.join("b")
    membership.join("a")
    membership.leave("b")
    for each in observers:
        assert each.heard == [("b",), ("a", "b"), ("a",)]


@given(some.lists(some.tuples(some.booleans(), some.sampled_from("abc"))))
def test_the_members_are_those_that_joined_and_have_not_left(changes: list[tuple[bool, str]]) -> None:
    membership, present = Membership(), set()
    for joins, name in changes:
        (membership.join if joins else membership.leave)(name)
        (present.add if joins else present.discard)(name)
        assert membership.names == tuple(sorted(present))
