"""The clock of a run stops at its first end, and shows progress now and then."""

from backends.hosting.run_clock import PROGRESS_INTERVAL_S, RunClock


class Now:
    """A clock that stands where a test puts it."""

    at_s = 100.0

    def __call__(self) -> float:
        return self.at_s


def test_time_goes_on_until_the_first_end() -> None:
    now = Now()
    clock = RunClock(now)
    now.at_s = 107.0
    assert clock.elapsed_s == 7.0 and not clock.ended
    clock.end()
    now.at_s = 109.0
    clock.end()
    assert clock.elapsed_s == 7.0 and clock.ended


def test_a_run_that_began_before_has_lasted_longer() -> None:
    clock = RunClock(Now())
    clock.begin(90.0)
    assert clock.elapsed_s == 10.0


def test_progress_is_shown_once_in_each_interval() -> None:
    now = Now()
    clock = RunClock(now)
    assert not clock.shows_progress()
    now.at_s += PROGRESS_INTERVAL_S
    assert clock.shows_progress() and not clock.shows_progress()
    now.at_s += PROGRESS_INTERVAL_S
    assert clock.shows_progress()
