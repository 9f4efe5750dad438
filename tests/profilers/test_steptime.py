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
        self.window = []
        self.stages = []

    def __call__(self):
        self.taken += 1
        total = next(self.totals)
        return 0.7 * total, 0.1 * total, 0.2 * total

    def note(self, progress):
        self.stages.append((progress.stage, progress.steps))
        self.step_s = progress.step_s

    def hooks(self, stop_after=10**9, enough_after=10**9):
        return steptime.Hooks(
            progress=self.note,
            window_start=lambda: self.window.append(self.taken),
            window_end=lambda: self.window.append(self.taken),
            should_stop=lambda: self.taken >= stop_after,
            enough=lambda: self.taken >= enough_after,
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


@pytest.mark.parametrize("step_s, timed", [(0.11, 40), (0.15, 30), (0.0039, 1040)])
def test_quiet_steps_are_timed_for_four_seconds_and_thirty_times(step_s, timed):
    steps = Steps(itertools.repeat(step_s))
    times = steptime.measure(steps, "adaptive", steps.hooks())
    warmup = len(times.gradient_s.warmup)
    assert warmup == (130 if step_s < 0.01 else 40)
    assert len(times.gradient_s.values) == timed
    assert (times.steady, times.precise, times.reason) == (True, True, "precise")
    assert steps.window == [warmup, warmup + timed]
    assert steps.stages[-1] == ("timed", timed)


@pytest.mark.parametrize("step_s, timed", [(0.11, 30), (0.0039, 520)])
def test_without_a_budget_they_are_timed_for_two_seconds(step_s, timed):
    times = steptime.measure(Steps(itertools.repeat(step_s)), "adaptive", steptime.Hooks(enough=lambda: True))
    assert len(times.gradient_s.values) == timed


def test_very_short_steps_are_timed_three_thousand_times():
    times = steptime.measure(Steps(itertools.repeat(0.0001)))
    assert len(times.gradient_s.values) == 3000


def test_noisy_steps_are_timed_until_their_mean_is_known_within_a_percent():
    noise = np.random.default_rng(0).normal(1.0, 0.06, 900)
    times = steptime.measure(Steps(noise))
    totals = np.sum([times.gradient_s.values, times.copy_s.values, times.update_s.values], axis=0)
    assert times.precise and 100 < len(totals) < 300
    assert np.mean(totals) == pytest.approx(1.0, rel=0.02)


def test_steps_that_never_settle_are_flagged_and_bounded():
    times = steptime.measure(Steps(1.05**n for n in itertools.count()))
    assert (len(times.gradient_s.warmup), len(times.gradient_s.values)) == (300, 500)
    assert (times.steady, times.precise, times.reason) == (False, False, "limit")


@pytest.mark.parametrize("after, warmup, timed", [(1, 10, 30), (25, 25, 30), (60, 40, 30), (90, 40, 50)])
def test_noisy_steps_end_at_the_time_limit_but_not_before_thirty(after, warmup, timed):
    steps = Steps(np.random.default_rng(0).normal(1.0, 0.2, 900))
    times = steptime.measure(steps, "adaptive", steps.hooks(enough_after=after))
    assert (len(times.gradient_s.warmup), len(times.gradient_s.values)) == (warmup, timed)
    assert (times.steady, times.precise, times.reason) == (warmup == 40, False, "enough")


def test_enough_does_not_make_a_precise_mean_less_so():
    times = steptime.measure(Steps(itertools.repeat(0.1)), "adaptive", steptime.Hooks(enough=lambda: True))
    assert (times.precise, times.reason) == (True, "precise")


def test_the_precision_of_short_steps_is_checked_twice_a_second():
    steps = Steps(itertools.repeat(0.0039))
    steptime.measure(steps, "adaptive", steps.hooks())
    assert steps.stages == [("warm-up", 130), *(("timed", 130 * check) for check in range(1, 9))]


def test_a_repeat_warms_up_for_five_steps_and_times_ten():
    steps = Steps(itertools.count(1.0))
    times = steptime.measure_repeat(steps, steps.hooks())
    assert times.gradient_s.warmup == pytest.approx([0.7 * t for t in range(1, 6)])
    assert times.update_s.values == pytest.approx([0.2 * t for t in range(6, 16)])
    assert steps.window == [5, 15] and steps.stages[-1] == ("again", 10)


@pytest.mark.parametrize("step_s, timed", [(0.06, 40), (0.0011, 1820), (0.0001, 3000)])
def test_a_repeat_times_short_steps_for_two_seconds_up_to_the_limit(step_s, timed):
    assert len(steptime.measure_repeat(Steps(itertools.repeat(step_s))).gradient_s.values) == timed


def test_a_repeat_stops_when_asked():
    steps = Steps(itertools.repeat(0.1))
    times = steptime.measure_repeat(steps, steps.hooks(stop_after=3))
    assert (len(times.gradient_s.warmup), times.gradient_s.values, times.reason) == (3, (), "stopped")


def test_progress_states_the_median_step():
    steps = Steps([0.1] * 45 + [5.0] * 10 + [0.1] * 900)
    steptime.measure(steps, "adaptive", steps.hooks())
    assert steps.step_s == pytest.approx(0.1)


@pytest.mark.parametrize("after, warmup, timed, window", [(7, 7, 0, []), (45, 40, 5, [40, 45])])
def test_a_stopped_measurement_returns_its_steps(after, warmup, timed, window):
    steps = Steps(itertools.repeat(0.1))
    times = steptime.measure(steps, "adaptive", steps.hooks(stop_after=after))
    assert (len(times.gradient_s.warmup), len(times.gradient_s.values)) == (warmup, timed)
    assert times.reason == "stopped" and not times.precise
    assert steps.window == window


def test_the_window_is_closed_when_a_step_fails():
    steps = Steps([0.1] * 50)  # StopIteration at the 51st
    with pytest.raises(StopIteration):
        steptime.measure(steps, "adaptive", steps.hooks())
    assert steps.window == [40, 51]


def test_an_unknown_protocol_is_named_with_the_known_ones():
    with pytest.raises(ValueError, match="'quick'; known: adaptive, paper"):
        steptime.measure(Steps([]), "quick")
