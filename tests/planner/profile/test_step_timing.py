"""A step timer: it ends where the budget is spent, and repeats what does not agree. No agent."""

from collections.abc import Callable
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as some

from backends.protocol.events import StepTimed
from backends.protocol.orders import RepeatSteps, TimeSteps
from planner.agents.client import AgentClient
from planner.fleet.device import Device
from planner.profile import repeats
from planner.profile.crowd import Crowd
from planner.profile.request import ProfileRequest
from planner.profile.step_timing import BUDGET_SHARE, StepTimer, TimeBudget
from profilers.records.readings import Samples
from profilers.records.steps import Repeat, StepProfile
from tests.planner import profiles

EVENT = StepTimed("timed", 50, 0.1, rest_s=100.0, precision=0.5)


class Order:
    """An order under way: it gives an event, then its answer."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer
        self.ended_early = False

    def result(self, timeout_s: float, on_event: Callable[[StepTimed], None]) -> Any:
        on_event(EVENT)
        return self._answer

    def go(self) -> None:
        self.ended_early = True


class Agent:
    """Stands for an agent that times models; each order takes the next of ``step_s``."""

    def __init__(self, *step_s: float) -> None:
        self._step_s = list(step_s)
        self.orders: list[TimeSteps | RepeatSteps] = []
        self.calls: list[Order] = []

    def start(self, order: TimeSteps | RepeatSteps) -> Order:
        step_s = Samples("s", (self._step_s.pop(0),) * 10)
        none = Samples("s", (0.0,) * 10)
        whole = profiles.step()._replace(gradient_s=step_s, copy_s=none, update_s=none)
        answer = whole if isinstance(order, TimeSteps) else Repeat(step_s, none, none, 1.0)
        self.orders.append(order)
        self.calls.append(Order(answer))
        return self.calls[-1]


def timer(steps_planned: int = 100_000, sharing: int = 1, shown: list[Any] | None = None) -> StepTimer:
    request = ProfileRequest(("net",), batch=32, steps_planned=steps_planned)
    progress = [] if shown is None else shown
    budget = TimeBudget(steps_planned, devices=1, common_s=0.0)
    return StepTimer(request, {"net": "abc"}, budget, lambda _: sharing, lambda *each: progress.append(each))


def whole(timing: StepTimer, agent: Agent) -> StepProfile:
    return timing.whole(Device(name="pc"), cast(AgentClient, agent), "net", "torch")


def checked(agent: Agent) -> StepProfile:
    timing = timer()
    return timing.checked(Device(name="pc"), cast(AgentClient, agent), whole(timing, agent), 1.0)


def test_in_a_crowd_counts_what_is_timed_while_all_make_steps() -> None:
    crowd, timing = Crowd(["pc", "slow"]), timer()

    class Slow(Agent):
        """While it takes its orders the slow device begins, and later ends."""

        def start(self, order: TimeSteps | RepeatSteps) -> Order:
            if len(self.orders) == 1:
                crowd.steps("slow")
            if len(self.orders) == 4:
                crowd.end("slow")
            return super().start(order)

    agent = Slow(0.1, 0.2, 0.3, 0.4, 0.5)
    found = timing.beside(Device(name="pc"), cast(AgentClient, agent), profiles.step(), crowd)
    assert found.gradient_s.values == (0.3,) * 10  # the second one began before the slow device did
    assert len(agent.orders) == 5  # the others are for the slow device


def test_timing_ends_early_where_the_budget_is_spent() -> None:
    for steps_planned, sharing, early in ((100_000, 1, True), (1_000_000, 1, False), (1_000_000, 10, True)):
        agent = Agent(0.1)
        whole(timer(steps_planned, sharing), agent)
        assert [call.ended_early for call in agent.calls] == [early]


def test_a_timing_states_the_model_as_requested_and_counts_as_the_first_repeat() -> None:
    timed = whole(timer(steps_planned=500), Agent(0.1))
    assert (timed.model, timed.fingerprint, timed.steps_planned, timed.repeats) == ("net", "abc", 500, (0.1,))


def test_progress_names_the_stage_and_the_share_of_it() -> None:
    shown: list[Any] = []
    whole(timer(shown=shown), Agent(0.1))
    ((name, text, share),) = shown
    assert (name, text) == ("pc", "net: timed step 50")
    assert 0 < share < 1


def test_two_timings_that_agree_need_no_third() -> None:
    agent = Agent(0.1, 0.101)
    timed = checked(agent)
    assert [type(order) for order in agent.orders] == [TimeSteps, RepeatSteps]
    assert timed.repeats == pytest.approx((0.1, 0.101)) and len(timed.gradient_s.values) == 20


def test_two_timings_that_do_not_agree_are_followed_by_a_whole_third() -> None:
    agent = Agent(0.3, 0.1, 0.101)
    timed = checked(agent)
    assert [type(order) for order in agent.orders] == [TimeSteps, RepeatSteps, TimeSteps]
    assert timed.repeats == pytest.approx((0.3, 0.1, 0.101)) and set(timed.gradient_s.values) == {0.1, 0.101}
    assert repeats.agree(timed)


SECONDS = some.floats(1e-3, 10)


def test_a_device_alone_may_take_a_share_of_the_planned_steps() -> None:
    budget = TimeBudget(100_000, devices=1, common_s=0.0)
    budget.note("pc", "resnet", 0.1)
    assert not budget.spent("resnet", 69.9)
    assert budget.spent("resnet", 70.1)


def test_time_common_to_all_models_is_subtracted() -> None:
    budget = TimeBudget(100_000, devices=1, common_s=20.0)
    budget.note("pc", "resnet", 0.1)
    assert not budget.spent("resnet", 49.9)
    assert budget.spent("resnet", 50.1)


def test_a_slow_device_beside_a_fast_one_gets_fewer_steps() -> None:
    budget = TimeBudget(100_000, devices=2, common_s=0.0)
    budget.note("tx1", "resnet", 0.5)
    assert not budget.spent("resnet", 170.0)  # 340 steps of its own
    budget.note("pc", "resnet", 0.1)
    assert budget.spent("resnet", 170.0)
    assert not budget.spent("resnet", 55.0)  # 110 steps of its own


def test_a_device_without_an_estimate_counts_as_the_fastest() -> None:
    budget = TimeBudget(100_000, devices=3, common_s=0.0)
    budget.note("pc", "resnet", 0.1)
    budget.note("tx1", "resnet", 0.5)
    assert not budget.spent("resnet", 700 / (10 + 2 + 10) - 0.1)
    assert budget.spent("resnet", 700 / (10 + 2 + 10) + 0.1)


def test_each_model_has_its_own_budget_and_none_is_spent_before_an_estimate() -> None:
    budget = TimeBudget(1000, devices=2, common_s=5.0)
    budget.note("pc", "resnet", 0.001)
    assert not budget.spent("alexnet", 1e6)


def test_the_latest_estimate_of_a_step_counts() -> None:
    budget = TimeBudget(1000, devices=1, common_s=0.0)
    budget.note("pc", "resnet", 1.0)
    budget.note("pc", "resnet", 0.1)
    assert budget.spent("resnet", 1.0)


@given(step_s=some.lists(SECONDS, min_size=1, max_size=6), steps=some.integers(1, 10**6))
def test_the_budget_is_a_share_of_the_time_of_the_fastest_imaginable_cluster(step_s: list[float], steps: int) -> None:
    budget = TimeBudget(steps, devices=len(step_s), common_s=0.0)
    for name, seconds in enumerate(step_s):
        budget.note(str(name), "resnet", seconds)
    training_s = steps / sum(1 / seconds for seconds in step_s)
    assert budget.spent("resnet", BUDGET_SHARE * training_s * 1.001)
    assert not budget.spent("resnet", BUDGET_SHARE * training_s * 0.999)
