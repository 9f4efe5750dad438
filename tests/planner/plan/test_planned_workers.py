"""A plan tells of each member what holds it up, how long it waits, and what its buffer does.

Devices a, b and c have gradients of 0.1, 0.4 and 1.7 s, of 32 samples each.
"""

import pytest

from backends.strategies.engine import Engine
from backends.streams.spec import StreamSpec
from planner.errors import PlanError, RecordError
from planner.json_records import decode
from planner.plan.file import Plan, PlannedStream
from planner.plan.recommend import make_plan, recommend
from planner.plan.recommendation import Recommendation
from planner.plan.texts import parse_strategy, parse_stream
from profilers.records.json_values import json_value
from profilers.records.readings import StreamRate
from tests.planner import profiles
from tests.planner.requests import asked

TIME = {"time": 1.0}


def ranked(stream: str | None, strategy: str = "parameter-server", **changes: object) -> Recommendation:
    spec = None if stream is None else StreamSpec.from_text(stream)
    request = asked(TIME, strategy=parse_strategy(strategy), steps=1000, stream=spec)
    return recommend(profiles.three(), request._replace(**changes))


def streams(made: Plan) -> dict[str, PlannedStream]:
    found = {worker.name: worker.stream for worker in made.workers}
    assert all(found.values())
    return found  # type: ignore[return-value]


def alone(stream: str) -> PlannedStream:
    (found,) = streams(make_plan(ranked(stream, exclude=("b", "c")), "fleet.toml")).values()
    return found


def test_a_stream_that_is_slower_than_its_device_holds_it_up_and_nothing_is_left_over() -> None:
    found = alone("replay:16")
    assert (found.bound_by, found.rate, found.samples) == ("its stream", 16.0, 32.0)
    assert (found.free_s, found.least_s) == (pytest.approx(0.11), 2.0)
    assert found.waiting_share == pytest.approx(1 - 0.11 / 2)
    assert (found.growth, found.buffered) == (0.0, 0.0)


def test_a_faster_one_fills_the_buffer_for_as_long_as_the_run_lasts() -> None:
    """1,000 steps take 110 s, in which 400 samples arrive each second and 32 / 0.11 are used."""
    found = alone("replay:400")
    assert (found.bound_by, found.waiting_share) == ("its steps", 0.0)
    assert found.growth == pytest.approx(400 - 32 / 0.11)
    assert found.buffered == pytest.approx(110 * found.growth)
    assert found.buffered_bytes is None  # nobody knows how large a sample of this model is


def test_what_truncation_drops_is_in_no_buffer() -> None:
    found = alone("replay:400,policy=truncate")
    assert (found.growth, found.buffered) == (0.0, 400.0)


def test_bytes_are_those_of_measured_samples() -> None:
    profile = profiles.three()
    for name in "abc":
        profile = profile.with_device(name, streams={f"directory:/data/{name}": StreamRate(400.0, 0.01, 10.0, 3000.0)})
    made = make_plan(recommend(profile, asked(TIME, stream=parse_stream("directory:/data/{device}"))), "fleet.toml")
    assert all(each.buffered_bytes == pytest.approx(3000 * each.buffered) for each in streams(made).values())


def test_who_waits_for_another_ones_samples_is_told_whose() -> None:
    made = make_plan(ranked("replay:b@8/1000", "allreduce", include=("a", "b", "c")), "fleet.toml")
    found = streams(made)
    assert {name: each.bound_by for name, each in found.items()} == {
        "a": "the stream of b", "b": "its stream", "c": "the stream of b",
    }  # fmt: skip
    assert found["a"].waiting_share == found["c"].waiting_share == 0.0 < found["b"].waiting_share
    assert all(worker.cycle_s == pytest.approx(4.0) for worker in made.workers)


def test_the_plan_keeps_its_stream_and_one_of_a_damaged_text_is_refused() -> None:
    made = make_plan(ranked("replay:30,policy=truncate"), "fleet.toml")
    assert made.run.stream is not None and made.run.stream.text == "replay:30,policy=truncate"
    damaged = json_value(made)
    damaged["run"]["stream"] = "tape:30"
    with pytest.raises(RecordError, match="run.stream: .*unknown source of a stream 'tape'"):
        decode(Plan, damaged)


def test_an_unknown_stream_is_refused_with_the_option() -> None:
    with pytest.raises(PlanError, match="--stream replai:S1: unknown source of a stream 'replai'; did you mean replay"):
        parse_stream("replai:S1")


# -- evaluations ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("engine", "gathers"), [("torch", 0), ("torch:shard=full", 1)])
def test_each_batch_of_an_evaluation_gathers_the_blocks_of_a_model_in_shares(engine: str, gathers: int) -> None:
    """Of 1 MB each of two members has a half; a batch has 32 samples."""
    timed = profiles.step(collectives=("gloo", "fully_shard"), blocks=(100_000,), evaluation_s=0.001)
    request = asked(TIME, strategy=parse_strategy("allreduce"), engine=Engine.from_text(engine), include=("a", "b"))
    made = make_plan(recommend(profiles.profile(dict.fromkeys("ab", profiles.device(timed))), request), "fleet.toml")
    gather_s = 0.5e6 / (100 * profiles.MBIT)
    assert [each.evaluation_s for each in made.workers] == pytest.approx([0.001 + gathers * gather_s / 32] * 2)
