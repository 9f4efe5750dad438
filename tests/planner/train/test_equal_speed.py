"""A prediction again, for machines that were slower or faster in the run than in the profile."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.train.equal_speed import at_equal_speed, slowdowns
from planner.train.worker_result import WorkerResult
from profilers.records.readings import MachineSpeed
from tests.planner.plans import NAMEPLATE, plan, planned, streamed, with_settings

PROFILED = MachineSpeed(0.002, None, 10)
#: Of 2 s of a step, 1.5 s are computing.
WORKERS = [planned(name)._replace(computing_s=1.5, speed=PROFILED) for name in "ab"]
ASYNCHRONOUS = plan(*WORKERS)


def part(loop_s):
    speed = None if loop_s is None else MachineSpeed(loop_s, None, 10)
    return WorkerResult(50, 75.0, 25.0, 0.0, None, NAMEPLATE, speed=speed)


def test_loops_are_compared_with_those_of_the_profile():
    found = slowdowns(ASYNCHRONOUS, {"a": part(0.003), "b": part(0.001)})
    assert found == {"a": pytest.approx(1.5), "b": pytest.approx(0.5)}


def test_a_worker_whose_speed_is_unknown_has_no_slowdown_and_the_run_no_prediction():
    found = slowdowns(ASYNCHRONOUS, {"a": part(0.003), "b": part(None)})
    assert found == {"a": pytest.approx(1.5)}
    assert at_equal_speed(ASYNCHRONOUS, found) is None


def test_a_plan_that_does_not_tell_what_is_computed_has_none():
    assert at_equal_speed(plan(planned("a"), planned("b")), {"a": 1.0, "b": 1.0}) is None


def test_computing_takes_as_many_times_as_long_and_the_exchange_does_not():
    found = at_equal_speed(ASYNCHRONOUS, {"a": 2.0, "b": 2.0})
    assert found is not None and found.time_s == pytest.approx(100 / (2 / 3.5))
    assert found.power_w == ASYNCHRONOUS.prediction.power_w


def test_workers_that_wait_for_nobody_share_the_steps_anew():
    found = at_equal_speed(ASYNCHRONOUS, {"a": 2.0, "b": 1.0})
    assert found is not None and found.time_s == pytest.approx(100 / (1 / 3.5 + 1 / 2))


def test_workers_that_wait_for_one_another_are_as_slow_as_the_slowest():
    waiting = with_settings(ASYNCHRONOUS, strategy="parameter-server:sync=synchronous")
    found = at_equal_speed(waiting, {"a": 2.0, "b": 1.0})
    assert found is not None and found.time_s == pytest.approx(100 / (2 / 3.5))


@given(st.floats(0.2, 5.0), st.floats(0.2, 5.0), st.sampled_from(["", ":sync=synchronous"]))
def test_slower_machines_never_make_a_run_shorter(one, other, sync):
    made = with_settings(ASYNCHRONOUS, strategy="parameter-server" + sync)
    before, after = at_equal_speed(made, {"a": one, "b": other}), at_equal_speed(made, {"a": 1.1 * one, "b": other})
    assert before is not None and after is not None
    assert after.time_s >= before.time_s * (1 - 1e-9)


def test_as_fast_as_in_the_profile_is_as_predicted():
    found = at_equal_speed(ASYNCHRONOUS, {"a": 1.0, "b": 1.0})
    assert found == ASYNCHRONOUS.for_steps(100).prediction


def test_samples_arrive_no_sooner_for_a_faster_machine_and_hide_some_of_what_a_slower_one_takes():
    """Its step takes 1.5 s, all of it computing, and its samples 2 s."""
    made = plan(WORKERS[0]._replace(stream=streamed(free_s=1.5)))
    for factor, cycle_s in ((0.5, 2.0), (1.0, 2.0), (1.3, 2.0), (2.0, 3.0)):
        found = at_equal_speed(made, {"a": factor})
        assert found is not None and found.time_s == pytest.approx(100 * cycle_s)
