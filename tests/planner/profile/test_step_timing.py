"""A step timer and its orders, by an agent that is made up."""

from collections.abc import Callable
from typing import Any, cast

from backends.protocol.events import StepTimed
from backends.protocol.orders import RepeatSteps, TimeSteps
from planner.agents.client import AgentClient
from planner.fleet.device import Device
from planner.profile.request import ProfileRequest
from planner.profile.step_timing import StepTimer, await_ready, with_more_steps
from profilers.records.steps import Repeat
from tests.planner import profiles

PC = Device(name="pc")


class Order:
    """An order under way, which is ready. Told to go, it gives an event, then its answer."""

    ended, told = False, False

    def event(self, silence_s: float) -> StepTimed:
        return StepTimed("ready", 6, 0.0)

    def go(self) -> None:
        self.told = True

    def result(self, timeout_s: float, on_event: Callable[[StepTimed], None]) -> Any:
        assert self.told
        on_event(StepTimed("timed", 50, 0.1))
        return profiles.step(model="as shipped", fingerprint="")


class Agent:
    """Keeps the orders that it is given."""

    def __init__(self) -> None:
        self.orders: list[TimeSteps | RepeatSteps] = []

    def start(self, order: TimeSteps | RepeatSteps) -> Order:
        self.orders.append(order)
        return Order()


def timer(shown: list[Any]) -> StepTimer:
    return StepTimer(ProfileRequest(("net",), batch=32), {"net": "abc"}, lambda *each: shown.append(each))


def test_a_timing_states_the_model_as_requested_and_progress_its_stage() -> None:
    shown: list[Any] = []
    call = timer(shown).begin(PC, cast(AgentClient, Agent()), "net", "torch")
    await_ready(call, 1.0)
    timed = timer(shown).whole(PC, call, "net")
    assert (timed.model, timed.setup.fingerprint) == ("net", "abc")
    assert shown == [("pc", "net: building", None), ("pc", "net: timed step 50", None)]


def test_a_model_is_timed_again_at_the_batch_size_that_fitted() -> None:
    agent = Agent()
    timer([]).again(PC, cast(AgentClient, agent), profiles.step(batch=8, requested_batch=32), 2.0, waits=True)
    (order,) = agent.orders
    assert isinstance(order, RepeatSteps) and (order.batch, order.seconds, order.waits) == (8, 2.0, True)


def test_more_steps_join_those_that_are_known() -> None:
    none = profiles.seconds(0.0, count=300)
    found = with_more_steps(profiles.step(0.1), Repeat(profiles.seconds(0.2, count=300), none, none, 0.3))
    assert len(found.gradient_s.values) == len(found.update_s.values) == 400
    assert found.cpu_s_per_step == (100 * 0.1 + 300 * 0.3) / 400
