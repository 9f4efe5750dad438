"""Both protocols define the steps of the warm-up, the timed steps and the window."""

import itertools

import numpy as np
import pytest

from profilers import steptime


class Steps:
    """Steps of a given duration, split over the three phases, that note what the hooks see."""

    def __init__(self, totals):
        self.totals = iter(totals)
        self.taken = 0
        self.passed = 0.0
        self.window = []
        self.stages = []

    def __call__(self):
        self.taken += 1
        total = next(self.totals)
        self.passed += total
        return 0.7 * total, 0.1 * total, 0.2 * total

    def note(self, progress):
        self.stages.append((progress.stage, progress.steps))
        self.step_s = progress.step_s

    def hooks(self, stop_after=10**9):
        return steptime.Hooks(
            progress=self.note,
            window_start=lambda: self.window.append(self.taken),
            window_end=lambda: self.window.append(self.taken),
            should_stop=lambda: self.taken >= stop_after,
        )


def test_the_paper_protocol_takes_300_and_100_and_100_steps():
    steps = Steps(itertools.count(1.0))
    times = steptime.measure(steps, "paper", steps.hooks())
    assert steps.taken == 500
    assert times.gradient_s.warmup == pytest.approx([0.7 * t for t in range(1, 301)])
    assert times.gradient_s.values == pytest.approx([0.7 * t for t in range(301, 401)])
    assert times.copy_s.values == pytest.approx([0.1 * t for t in range(301, 401)])
    assert times.update_s.unit == "s"
    assert steps.window == [400, 500]
    assert (times.steady, times.precise, times.reason) == (False, False, "protocol")


@pytest.mark.parametrize("step_s, warmup, timed", [(0.004, 125, 250), (0.11, 10, 10), (0.3, 4, 4), (2.0, 2, 3)])
def test_quiet_steps_are_timed_for_a_second_and_three_times(step_s, warmup, timed):
    steps = Steps(itertools.repeat(step_s))
    times = steptime.measure(steps, "adaptive", steps.hooks())
    assert (len(times.gradient_s.warmup), len(times.gradient_s.values)) == (warmup, timed)
    assert (times.precise, times.reason) == (True, "precise")
    assert steps.window == [warmup, warmup + timed]
    assert steps.stages[-1] == ("timed", timed)


def test_noisy_steps_are_timed_until_their_mean_is_known_within_three_percent():
    noise = np.random.default_rng(0).normal(0.05, 0.004, 900)
    times = steptime.measure(Steps(noise))
    totals = np.sum([times.gradient_s.values, times.copy_s.values, times.update_s.values], axis=0)
    assert times.precise and 20 < len(totals) <= 40
    assert np.mean(totals) == pytest.approx(0.05, rel=0.04)


def test_steps_that_never_settle_are_flagged_and_end_in_time():
    times = steptime.measure(Steps(0.01 * 1.05**n for n in itertools.count()))
    assert (times.steady, times.precise, times.reason) == (False, False, "limit")
    assert sum(times.gradient_s.values) < 2 * steptime.LONGEST_S


def test_the_precision_of_short_steps_is_checked_twice_a_second():
    steps = Steps(itertools.repeat(0.0039))
    steptime.measure(steps, "adaptive", steps.hooks())
    assert steps.stages == [("warm-up", 129), ("timed", 129), ("timed", 258)]


def repeated(steps, seconds, **options):
    """A repeat by the clock of its steps."""
    return steptime.measure_repeat(steps, seconds, steps.hooks(), clock=lambda: steps.passed, **options)


def test_a_repeat_warms_up_for_two_steps_and_then_lasts_as_long_as_asked():
    steps = Steps(itertools.repeat(0.25))
    times = repeated(steps, 2.0)
    assert (len(times.gradient_s.warmup), len(times.gradient_s.values)) == (2, 8)
    assert steps.window == [2, 10] and steps.stages[-1] == ("again", 8)


def test_steps_do_not_count_until_a_repeat_is_told_to_begin():
    steps = Steps(itertools.repeat(0.25))
    times = repeated(steps, 1.0, begins=lambda: steps.taken >= 20)
    assert steps.window == [20, 24] and len(times.gradient_s.values) == 4
    assert ("ready", 2) in steps.stages


def test_the_window_is_closed_when_a_step_fails():
    steps = Steps([0.1] * 20)  # StopIteration at the 21st
    with pytest.raises(StopIteration):
        steptime.measure(steps, "adaptive", steps.hooks())
    assert steps.window == [12, 21]


def test_an_unknown_protocol_is_named_with_the_known_ones():
    with pytest.raises(ValueError, match="'quick'; known: adaptive, paper"):
        steptime.measure(Steps([]), "quick")
