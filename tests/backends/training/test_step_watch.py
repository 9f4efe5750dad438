"""A computation that takes far longer than those before it counts as hung."""

import threading

import pytest

from backends.training.compute_clock import ComputeClock
from backends.training.step_watch import FACTOR, StepWatch, overdue
from tests.running import HANG_S


class Steps:
    """A clock that is set by hand, after steps of these seconds."""

    def __init__(self, *seconds: float) -> None:
        self.now_s = 0.0
        self.clock = ComputeClock(lambda: self.now_s)
        for each in seconds:
            self.clock.begin()
            self.now_s += each
        self.clock.end()

    def after(self, seconds: float) -> ComputeClock:
        """Another step is under way for so long."""
        self.clock.begin()
        self.now_s += seconds
        return self.clock


def test_the_clock_tells_the_longest_and_the_one_under_way() -> None:
    steps = Steps(1.0, 3.0, 2.0)
    assert (steps.clock.longest_s, steps.clock.seconds()) == (3.0, 0.0)
    assert steps.after(5.0).seconds() == 5.0
    assert steps.clock.longest_s == 3.0
    steps.clock.end()
    steps.clock.end()
    assert (steps.clock.longest_s, steps.clock.seconds()) == (5.0, 0.0)


@pytest.mark.parametrize(("seconds", "hung"), [(29.0, False), (31.0, True)])
def test_a_step_may_take_a_multiple_of_the_longest_before_it(seconds: float, hung: bool) -> None:
    told = overdue(Steps(1.0, 3.0).after(seconds * FACTOR / 10.0), least_s=5.0)
    assert (told == "a step has taken 31 s, the longest before it 3 s: it hangs") == hung
    assert (told is not None) == hung


def test_short_steps_may_take_the_least_that_any_may() -> None:
    assert overdue(Steps(0.01).after(59.0), least_s=60.0) is None
    assert overdue(Steps(0.01).after(61.0), least_s=60.0) is not None


def test_who_waits_for_others_does_not_hang() -> None:
    steps = Steps(0.1)
    steps.now_s += 1e6
    assert overdue(steps.clock, least_s=1.0) is None


def test_the_watch_tells_once_and_ends() -> None:
    told: list[str] = []
    heard = threading.Event()

    def on_hung(reason: str) -> None:
        told.append(reason)
        heard.set()

    with StepWatch(Steps(0.1).after(100.0), 0.01, on_hung):
        assert heard.wait(HANG_S)
    assert told == ["a step has taken 100 s, the longest before it 0.1 s: it hangs"]
