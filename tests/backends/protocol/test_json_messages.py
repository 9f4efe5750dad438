"""Messages go into JSON and back, and whatever does not fit is named."""

import json
from contextlib import suppress
from typing import Any, NamedTuple, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.frameworks.layout import Layout, Variable, consecutive
from backends.frameworks.optimizer import GradientSettings, OptimizerSettings
from backends.protocol import events, frames, json_messages, orders
from backends.protocol.json_messages import decode, encode, encode_list, record
from backends.protocol.member_specs import DataPart, HostAddress, Identity, MemberSpec, ReplicaSpec
from backends.strategies.engine import Engine
from backends.strategies.strategy import Strategy
from backends.streams.spec import StreamSpec
from backends.training.lr_schedule import RateSchedule
from backends.training.run_orders import HostRun, RunWorker
from backends.training.run_settings import RunSettings
from backends.training.run_spec import Checkpoints, RunSpec
from profilers.records.readings import PowerReading, Reading, Window
from profilers.records.steps import ComputeSettings
from tests.mutations import MUTATIONS, mutated


class Inner(NamedTuple):
    size: int
    name: str = "weights"


class OneOfAll(NamedTuple):
    number: float
    text: str
    flag: bool
    inner: Inner
    many: tuple[Inner, ...] = ()
    pair: tuple[str, int] = ("a", 1)
    by_name: dict[str, Inner] = {}
    perhaps: Optional[Inner] = None  # noqa: UP045 - as Python 3.6 has it
    anything: Any = None


FULL = OneOfAll(1.5, "x", True, Inner(1), (Inner(2, "state"),), ("b", 2), {"c": Inner(3)}, Inner(4), [1, {"d": None}])
WINDOW = Window(1.0, {"f_cpu": Reading("Hz", 1e9, None, 3)}, (PowerReading("s", "sensor", "board", 5.0, None, 3),))
IDENTITY = Identity("certificate", "key", "authority")
REPLICA = ReplicaSpec("torch", "cifar10", (32, 32, 3), 10)
SETTINGS = RunSettings(
    "cifar10", steps=100, batch=32, strategy=Strategy.from_text("parameter-server:compressor=top-k"),
    engine=Engine.from_text("torch:hook=bf16"), stream=StreamSpec.from_text("replay:30"),
)  # fmt: skip


def through_json(message: Any) -> Any:
    return decode(json.loads(json.dumps(encode(message))), [type(message)])


@pytest.mark.parametrize(
    "message",
    [
        FULL,
        orders.Ping(),
        events.MemberTelemetry(WINDOW, events.TimeSpent(3, 1.0)),
        events.Progress(1, 2, 0.5, {"a": events.MemberProgress(1, None, 10, None, True)}),
        RunWorker(
            MemberSpec("a", REPLICA, "train.npz", "test.npz", 32, 7),
            HostAddress("::1", 5000, IDENTITY, 10.0),
            SETTINGS,
            OptimizerSettings(),
            0.9,
        ),
        orders.TimeSteps(REPLICA, 32, "quick"),
    ],
    ids=lambda message: type(message).__name__,
)
def test_a_message_comes_back_as_it_was(message: Any) -> None:
    assert through_json(message) == message


def test_a_message_is_its_fields_and_its_type() -> None:
    assert encode(orders.Go(3)) == {"type": "go", "id": 3}


def test_a_message_comes_back_from_a_list_of_its_type_and_values() -> None:
    assert json.loads(json.dumps(encode_list(orders.Go(3)))) == ["go", 3]
    assert decode(json.loads(json.dumps(encode_list(FULL))), [OneOfAll]) == FULL


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ([], "unknown message None; expected inner"),
        (["inner", 1], "inner: expected an object or 2 values"),
        (["inner", 1, 3], "inner.name: expected a text, found 3"),
    ],
)
def test_a_list_that_does_not_fit_is_refused(values: list[Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        decode(values, [Inner])


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"size": None}, "inner.size: expected a whole number, found None"),
        ({"size": 1.5}, "inner.size: expected a whole number, found 1.5"),
        ({"size": True}, "inner.size: expected a whole number, found True"),
        ({"size": 1, "name": 3}, "inner.name: expected a text, found 3"),
        ({}, "inner: missing 'size'"),
        ({"size": 1, "names": "x"}, "inner: unknown 'names'"),
    ],
)
def test_what_does_not_fit_a_field_is_named(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        decode({"type": "inner", **changes}, [Inner])


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("many", [{"size": "3"}], r"one_of_all.many\[0\].size: expected a whole number"),
        ("many", {"size": 3}, "one_of_all.many: expected a list"),
        ("pair", ["a"], "one_of_all.pair: expected 2 values"),
        ("by_name", {"c": 7}, "one_of_all.by_name.c: expected an object"),
        ("perhaps", 7, "one_of_all.perhaps: expected an object"),
        ("number", "7", "one_of_all.number: expected a number"),
        ("flag", 1, "one_of_all.flag: expected true or false"),
    ],
)
def test_the_path_of_what_does_not_fit_is_named(field: str, value: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        decode({**encode(FULL), field: value}, [OneOfAll])


def test_an_unknown_message_is_named_beside_those_that_are_expected() -> None:
    with pytest.raises(ValueError, match="unknown message 'ping'; expected go or stop"):
        decode(encode(orders.Ping()), [orders.Stop, orders.Go])
    with pytest.raises(ValueError, match="expected an object or a list, found 7"):
        decode(7, [orders.Go])


def test_a_text_that_stands_for_a_record_is_checked() -> None:
    damaged = dict(encode(HostRun("::1", IDENTITY, SPEC)))
    damaged["spec"]["run"]["strategy"] = "gossip"
    with pytest.raises(ValueError, match=r"host_run\.spec\.run\.strategy: unknown strategy 'gossip'"):
        decode(damaged, [HostRun])


def test_a_record_needs_no_type() -> None:
    assert record(Inner, {"size": 3}) == Inner(3)


@pytest.mark.parametrize("module", [events, orders], ids=lambda module: module.__name__)
def test_no_two_messages_have_one_name_and_none_has_a_field_for_its_type(module: Any) -> None:
    kinds = [kind for kind in vars(module).values() if hasattr(kind, "_fields")]
    names = [json_messages.name_of(kind) for kind in kinds]
    assert len(kinds) > 3 and len(set(names)) == len(names)
    assert not [kind for kind in kinds if json_messages.TYPE in kind._fields]


LAYOUT = Layout(consecutive([("conv/kernel", (2, 3)), ("bias", ())]), consecutive([("norm/mean", (2,))]))
CHECKPOINTS = Checkpoints("c.npz", description={"model": "cipher"})
SPEC = RunSpec(SETTINGS, OptimizerSettings(0.1, 0.9), RateSchedule(), CHECKPOINTS)
WHOLE: tuple[Any, ...] = (
    RunWorker(
        MemberSpec("a", REPLICA, "train.npz", "test.npz", 32, 7, DataPart((1.0, 2.0), 0, 7)),
        HostAddress("::1", 5000, IDENTITY, 10.0), SETTINGS, OptimizerSettings(), 0.9,
    ),
    HostRun("::1", IDENTITY, SPEC),
    orders.AssembleProject("project-1", (orders.ProjectFile("a.py", "0" * 64, 0o644),)),
    orders.StoreFile("data-1.npz", 7),
    orders.TimeSteps(REPLICA, 32, "quick"),
    orders.Go(3),
    events.MemberTelemetry(WINDOW, events.TimeSpent(3, 1.0)),
    events.Progress(1, 2, 0.5, {"a": events.MemberProgress(1, None, 10, None, True)}),
    frames.WorkerHello(LAYOUT, (frames.ArraySpec("<f4", (3,)),)),
    frames.Gradient(1.5, 0.1, frames.MessageHead("sparse", 7, (2, 2))),
    frames.WorkerStep(3, 32, GradientSettings(0.1, 0.0), False, frames.MessageHead("dense", 7, (7,)), 0.1),
    frames.NamedArrays({"a": (frames.ArraySpec("<f4", (3,)),)}),
)  # fmt: skip


@MUTATIONS
@given(st.sampled_from(WHOLE), st.booleans(), st.data())
def test_a_damaged_message_is_refused_or_read(message: Any, as_list: bool, data: st.DataObject) -> None:
    encoded = json.loads(json.dumps(encode_list(message) if as_list else encode(message)))
    with suppress(ValueError):
        found = decode(data.draw(mutated(encoded)), [type(each) for each in WHOLE])
        json.dumps(encode(found))


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"size": -1}, "store_file.size: expected a whole number from 0 on, found -1"),
        ({"size": 10**400}, "store_file.size: expected a whole number from 0 on"),
    ],
)
def test_a_number_that_cannot_be_is_refused(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        decode({"type": "store_file", "name": "x", **changes}, [orders.StoreFile])


def test_a_number_of_too_many_digits_is_no_loss() -> None:
    with pytest.raises(ValueError, match="scores.loss: expected a number, found 1000"):
        decode({"type": "scores", "loss": 10**400, "metrics": {}, "seconds": 0.1}, [frames.Scores])


def test_an_array_lies_behind_the_one_before_it() -> None:
    apart = Layout((Variable("a", (2,), 0, 2), Variable("b", (2,), 3, 2)), ())
    with pytest.raises(ValueError, match="worker_hello.layout: b does not lie behind the one before it"):
        through_json(frames.WorkerHello(apart, ()))


class _Outer(NamedTuple):
    name: str
    inner: ComputeSettings = ComputeSettings()


def test_a_record_that_is_a_default_may_be_left_out() -> None:
    assert record(_Outer, {"name": "a"}) == _Outer("a")
    assert record(_Outer, {"name": "a", "inner": {"micro_batch": 4}}) == _Outer("a", ComputeSettings(4))
