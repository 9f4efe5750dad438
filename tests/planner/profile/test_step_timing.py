"""A step timer and its orders, by an agent that is made up."""

from collections.abc import Callable
from typing import Any, cast

from backends.protocol.events import StepTimed
from backends.protocol.orders import RepeatSteps, TimeSteps
from planner.agents.client import AgentClient
from planner.fleet.device import Device
from planner.profile.request import ProfileRequest
from planner.profile.step_timing import StepTimer
from tests.planner import profiles

PC = Device(name="pc")


class Order:
    """An order under way: it gives an event, then its answer."""

    def result(self, timeout_s: float, on_event: Callable[[StepTimed], None]) -> Any:
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
    timed = timer(shown).whole(PC, cast(AgentClient, Agent()), "net", "torch")
    assert (timed.model, timed.fingerprint) == ("net", "abc")
    assert shown == [("pc", "net: timed step 50", None)]


def test_a_model_is_timed_again_at_the_batch_size_that_fitted() -> None:
    agent = Agent()
    timer([]).again(PC, cast(AgentClient, agent), profiles.step(batch=8, requested_batch=32), 2.0, waits=True)
    (order,) = agent.orders
    assert isinstance(order, RepeatSteps) and (order.batch, order.seconds, order.waits) == (8, 2.0, True)
