"""Results of orders are what they should be, or refused in one line."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.agent.verbs import ORDERS
from backends.protocol import events, orders
from backends.protocol.events import MemberAccount, MemberProgress, RunAccount, TimeSpent
from backends.training.run_orders import RunRank
from planner.agents import results
from planner.agents.results import RESULTS
from planner.errors import AgentError
from profilers.records.json_values import json_value
from profilers.records.links import CurvePoint
from profilers.records.readings import Samples, StreamRate
from tests.mutations import MUTATIONS, mutated, written
from tests.planner import profiles

#: Orders that return nothing, and one whose result depends on who carries it out.
NOTHING = {orders.AwaitReachability, orders.FetchFile, orders.RemoveFile, orders.ServeMessages, orders.ServeThroughput}
ACCOUNT = RunAccount(8, 8, 1.0, {"nano": MemberProgress(8, 0.5, 0, None, True)}, True)

EXAMPLES: list[tuple[Any, Any]] = [
    (orders.CollectFacts(), profiles.facts()),
    (orders.FindCache(), events.CacheFolder("/home/me/.cache", "17:3")),
    (orders.FindMissing(("abc",)), ["abc"]),
    (orders.FindPackages(("numpy",)), {"numpy": "2.0", "tqdm": None}),
    (orders.ListCache(), [events.CacheEntry("run-1", "run", 5, 1.0, False)]),
    (orders.MeasureIdle(1.0), profiles.window()),
    (orders.ReadClock(), 1.5),
    (orders.FindFreePort(), 4000),
    (orders.FindFile("data", "abc"), None),
    (orders.SurveyData("/data"), events.FolderContent(1, 2, "abc")),
    (orders.WatchStream("socket:h:1", "tx2", 10.0), StreamRate(30.0, 0.01, 10.0, 3000.0)),
    (orders.SendMessages("10.0.0.1", 1, None, ()), events.MessageTimes((0.1,), (), None, None)),
]


PROBE = orders.SendMessages("10.0.0.1", 1, None, ())
POINT = CurvePoint(1000, Samples("s", (0.1,)), 0.0, 0.0)
REPEAT = orders.RepeatSteps(orders.ReplicaSpec("torch", "net"), 32, 1.0, False)


def as_json(value: Any) -> Any:
    return json.loads(json.dumps(json_value(value)))


def no_steps(**values: list[float]) -> dict[str, Any]:
    """A repeat of one step, with other values in some of its samples."""
    samples = {name: {"unit": "s", "values": values.get(name, [0.1])} for name in ("gradient_s", "copy_s", "update_s")}
    return {**samples, "cpu_s_per_step": 0.1}


def test_every_order_of_the_agent_has_the_class_of_its_result() -> None:
    assert set(ORDERS) - set(RESULTS) == NOTHING | {RunRank}


@pytest.mark.parametrize(("order", "expected"), EXAMPLES, ids=lambda each: type(each).__name__)
def test_what_an_agent_returns_comes_back_as_it_was(order: Any, expected: Any) -> None:
    found = results.read(order, as_json(expected), "tx2")
    assert found == (tuple(expected) if isinstance(expected, list) else expected)


def test_orders_without_a_result_have_none_whatever_is_said() -> None:
    assert results.read(orders.RemoveFile("x"), {"a": 1}, "tx2") is None


@pytest.mark.parametrize(
    ("order", "said", "told"),
    [
        (orders.FindCache(), "x", "result"),
        (orders.FindFreePort(), "4000", "result: expected a whole number"),
        (orders.FindMissing(("a",)), [1], "result[0]: expected a text"),
        (orders.CollectFacts(), {}, "result: missing"),
        (orders.ReadClock(), float("inf"), "result"),
        (orders.FindFile("a", "b"), 5, "result: expected a text"),
        (REPEAT, no_steps(gradient_s=[]), "result: gradient_s: expected seconds, found none"),
        (REPEAT, no_steps(gradient_s=[0.0]), "result: gradient_s: expected seconds above 0, found 0"),
        (REPEAT, no_steps(update_s=[]), "result: update_s: 0 values for 1 steps"),
        (PROBE, as_json(events.MessageTimes((), ())), "result: expected seconds of messages"),
        (PROBE, as_json(events.MessageTimes((0.1,), (POINT._replace(message_bytes=0),))), "expected seconds of mess"),
    ],
)
def test_a_refusal_names_device_order_and_place(order: Any, said: Any, told: str) -> None:
    with pytest.raises(AgentError) as refused:
        results.read(order, said, "tx2: find something")
    message = str(refused.value)
    assert message.startswith("tx2: find something returns what no agent would: ") and told in message
    assert "\n" not in message


@MUTATIONS
@given(st.data())
def test_what_no_agent_would_return_is_refused_or_read(data: st.DataObject) -> None:
    order, expected = data.draw(st.sampled_from(EXAMPLES))
    said = json.loads(written(data.draw(mutated([as_json(expected)]))))
    try:
        for each in said:
            results.read(order, each, "tx2")
    except AgentError:
        pass


def test_the_first_rank_gives_the_account_of_the_run_and_others_their_own() -> None:
    def order(name: str) -> Any:
        member: Any = SimpleNamespace(name=name)
        run: Any = None
        return RunRank(member, run, ("nano", "tx2"), "torch", "10.0.0.1", "10.0.0.1")

    own = MemberAccount(TimeSpent(), 0.5, {})
    assert results.read(order("nano"), as_json(ACCOUNT), "nano") == ACCOUNT
    assert results.read(order("tx2"), as_json(own), "tx2") == own
    with pytest.raises(AgentError):
        results.read(order("tx2"), as_json(ACCOUNT), "tx2")
