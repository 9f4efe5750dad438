"""A computation that takes far longer than those before it counts as hung."""

import threading

import pytest

from backends.training.compute_clock import EVALUATION, EXCHANGE, STEP, ComputeClock
from backends.training.step_watch import FACTOR, FIRST_S, REMEDY, StepWatch, first_limit_s, limited, overdue
from tests.running import HANG_S, until


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
    assert steps.clock.under_way() == (STEP, 0.0, 3.0)
    assert steps.after(5.0).under_way() == (STEP, 5.0, 3.0)
    steps.clock.end()
    steps.clock.end()
    assert steps.clock.under_way() == (STEP, 0.0, 5.0)


@pytest.mark.parametrize(("seconds", "hung"), [(29.0, False), (31.0, True)])
def test_a_step_may_take_a_multiple_of_the_longest_before_it(seconds: float, hung: bool) -> None:
    told = overdue(Steps(1.0, 3.0).after(seconds * FACTOR / 10.0), least_s=5.0)
    assert (told == f"a step has taken 31 s, the longest before it 3 s: {REMEDY}") == hung
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

    with StepWatch(Steps(0.1).after(100.0), 0.01, on_hung=on_hung):
        assert heard.wait(HANG_S)
    assert told == [f"a step has taken 100 s, the longest before it 0.1 s: {REMEDY}"]


@pytest.mark.parametrize(("predicted_s", "limit_s"), [(0.0, FIRST_S), (1.0, FIRST_S), (60.0, 60.0 * FACTOR)])
def test_the_first_step_may_take_a_multiple_of_what_is_predicted_and_minutes_in_any_case(
    predicted_s: float, limit_s: float
) -> None:
    first_s = first_limit_s(predicted_s)
    assert overdue(Steps().after(limit_s - 1.0), 60.0, first_s) is None
    told = overdue(Steps().after(limit_s + 1.0), 60.0, first_s)
    assert told == f"a step, the first, has taken {limit_s + 1.0:.0f} s: {REMEDY}"


def test_the_first_batch_of_an_evaluation_is_no_step_and_one_that_hangs_is_told() -> None:
    steps = Steps(0.1, 0.1)
    steps.clock.begin(EVALUATION)
    steps.now_s += 299.0
    assert overdue(steps.clock, 60.0) is None
    steps.now_s += 2.0
    assert overdue(steps.clock, 60.0) == f"{EVALUATION}, the first, has taken 301 s: {REMEDY}"
    steps.clock.begin(EVALUATION)
    assert steps.clock.under_way() == (EVALUATION, 0.0, 301.0)
    steps.clock.end()
    assert steps.clock.under_way() == (STEP, 0.0, pytest.approx(0.1))


def test_an_exchange_may_take_a_multiple_of_the_longest_before_it_and_what_others_may_take() -> None:
    now_s = [0.0]
    clock = ComputeClock(lambda: now_s[0], what=EXCHANGE)
    clock.allow(50.0)
    clock.begin()
    now_s[0] = 50.0 * FACTOR - 1.0
    assert overdue(clock, 400.0) is None
    now_s[0] += 2.0
    assert str(overdue(clock, 400.0)).startswith("an exchange has taken 501 s")
    assert overdue(clock, 600.0) is None


def test_what_does_not_come_to_its_end_within_its_limit_is_named() -> None:
    told: list[str] = []
    heard = threading.Event()

    def on_hung(reason: str) -> None:
        told.append(reason)
        heard.set()

    with limited("the job's function", 0.01, on_hung):
        assert heard.wait(HANG_S)
    assert told == [f"the job's function has taken 0 s: {REMEDY}"]


def test_what_ends_in_time_is_not_told() -> None:
    told: list[str] = []
    with limited("an import", 0.2, told.append):
        pass
    before = threading.active_count()
    with pytest.raises(ValueError, match="of its own"), limited("an import", 1e6, told.append):
        raise ValueError("of its own")
    until(lambda: threading.active_count() <= before, lambda: "the limit's thread goes on")
    assert told == []
