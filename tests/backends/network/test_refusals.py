"""What is refused is told one by one while it is little, and counted beyond that."""

from hypothesis import given
from hypothesis import strategies as st

from backends.network.refusals import INTERVAL_S, SINGLY, Refusals
from backends.protocol.events import Refused


class Told:
    """Refusals with a clock that is set by hand; ``events``: what was emitted."""

    def __init__(self):
        self.now_s, self.events = 0.0, []
        self.refusals = Refusals(self.events.append, lambda: self.now_s)

    def add(self, *reasons):
        for reason in reasons:
            self.refusals.add(reason)


def test_more_are_counted_and_told_when_the_interval_ends():
    told = Told()
    told.add(*"abcdefgh")
    assert told.events == [Refused(each) for each in "abcde"]
    told.now_s = INTERVAL_S
    told.refusals.tell_counted()
    assert told.events[SINGLY:] == [Refused("h", 3)]
    told.add("i")
    assert told.events[-1] == Refused("i")


def test_what_was_counted_is_told_at_the_end_and_once():
    told = Told()
    told.add(*"abcdefgh")
    told.refusals.tell_counted(over=True)
    told.refusals.tell_counted(over=True)
    assert told.events[SINGLY:] == [Refused("h", 3)]


@given(st.lists(st.floats(0.0, 40.0), max_size=400))
def test_every_refusal_is_told_once_and_no_interval_has_many_events(pauses_s):
    told = Told()
    for pause_s in pauses_s:
        told.now_s += pause_s
        told.add("x")
    told.refusals.tell_counted(over=True)
    assert sum(event.connections for event in told.events) == len(pauses_s)
    assert len(told.events) <= (SINGLY + 1) * (1 + told.now_s / INTERVAL_S)
