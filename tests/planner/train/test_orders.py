"""Orders follow from the options and the plan."""

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.data.dataset import Dataset
from backends.frameworks.optimizer import OptimizerSettings
from backends.protocol.member_specs import ReplicaSpec
from backends.strategies.strategy import Strategy
from backends.training.step_watch import FACTOR, FIRST_S
from planner.errors import PlanError, RecordError
from planner.json_records import load
from planner.predict.run import Prediction
from planner.train import orders
from planner.train.orders import Options
from planner.train.training_data import Placed, ShippedImages
from profilers.records.json_values import json_value
from tests.mutations import MUTATIONS, mutated, written
from tests.planner.plans import plan, planned

PLACED = Placed(ReplicaSpec("torch", "net"))

# -- options ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schedule": "cosin"}, '--schedule cosin: unknown; did you mean "cosine"'),
        ({"rate": 0.0}, "--learning-rate 0: give a finite number above 0"),
        ({"momentum": 1.0}, "--momentum 1: give a number from 0 to below 1"),
        ({"weight_decay": -0.1}, "--weight-decay -0.1: give a finite number of at least 0"),
    ],
)
def test_an_option_out_of_range_is_named_with_what_would_do(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        orders.check(Options("somewhere")._replace(**changes))


def test_a_target_that_no_evaluation_gives_is_refused() -> None:
    for known in ("accuracy=0.9", "accuracy = 0.9", "loss=0.1:lower", None):
        orders.settled_rule(Options("somewhere", target=known), {"accuracy": "higher"})
    with pytest.raises(PlanError, match="--target foo=3: an evaluation gives no foo; it gives accuracy, loss"):
        orders.settled_rule(Options("somewhere", target="foo=3"), {"accuracy": "higher"})


@pytest.mark.parametrize("target", ["mae", "=3", "mae=", "mae=nan", "mae=3:", "mae=3:up", "mae=3:lower:", "mae<=3"])
def test_a_target_of_another_form_is_refused_with_the_forms_that_there_are(target: str) -> None:
    with pytest.raises(PlanError, match=f"--target {target}: write METRIC=VALUE, as in accuracy=0.9, or METRIC=VALUE:"):
        orders.check(Options("somewhere", target=target))


def images(count: int) -> ShippedImages:
    pixels = np.zeros((count, 2, 2, 1), np.uint8)
    return ShippedImages(Dataset(pixels, np.zeros(count, np.int64), pixels[:1], np.zeros(1, np.int64), 2))


# -- orders ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("predicted_s", [0.001, 6000.0])
@pytest.mark.parametrize(("asked", "steps", "seconds"), [(0, 0, 60.0), (20, 20, 0.0)])
def test_checkpoints_go_by_the_clock_or_by_the_steps_that_are_asked_for_whatever_was_predicted(
    asked: int, steps: int, seconds: float, predicted_s: float
) -> None:
    lasting = plan(planned("a"))._replace(prediction=Prediction(predicted_s, 80.0))
    found = orders.run_spec(lasting, Options("x", checkpoint_every=asked), images(96), "ckpt", None).checkpoints
    assert (found.every, found.every_s) == (steps, seconds)


def test_left_to_itself_a_run_evaluates_once_an_epoch() -> None:
    assert orders.run_spec(plan(planned("a")), Options("x"), images(96), "ckpt", None).evaluate_every == 3
    assert orders.run_spec(plan(planned("a")), Options("x"), images(8), "ckpt", None).evaluate_every == 1


@pytest.mark.parametrize(
    ("optimizer", "expected"),
    [
        ("sgd", OptimizerSettings(0.01, 0.9, 0.0)),
        ("lars", OptimizerSettings(0.01, 0.9, 0.0, "lars")),
        ("adam:beta1=0.8", OptimizerSettings(0.001, 0.0, 0.0, "adam", 0.8)),
        ("adamw", OptimizerSettings(0.001, 0.0, 0.01, "adamw")),
    ],
)
def test_the_host_gets_the_optimizer_with_its_usual_numbers(optimizer: str, expected: OptimizerSettings) -> None:
    alone = plan(planned("a"), strategy=f"parameter-server:optimizer={optimizer}")
    assert orders.run_spec(alone, Options("x"), images(120), "ckpt", None).optimizer == expected


def test_the_norm_to_clip_to_reaches_the_host() -> None:
    made = plan(planned("a"), clip_norm=2.0)
    assert orders.run_spec(made, Options("x"), images(120), "ckpt", None).optimizer.clip_norm == 2.0


def test_a_stream_reaches_host_and_members_and_a_resumed_run_keeps_the_order_of_samples(tmp_path: Path) -> None:
    made, options = plan(planned("a"), planned("b"), stream="replay:S1"), Options("x", seed=3)
    streams = [orders.member(made, options, name, PLACED, tmp_path).stream for name in "ab"]
    assert [(each.text, each.rates_seed) for each in streams if each] == [("replay:S1", 3)] * 2
    assert len({each.seed for each in streams if each}) == len({each.folder for each in streams if each}) == 2
    assert orders.member(plan(planned("a")), options, "a", PLACED, tmp_path).stream is None
    assert orders.run_spec(made, options, images(96), None, None).run == made.run


def test_only_where_the_operator_asks_for_it_may_members_give_samples_to_others(tmp_path: Path) -> None:
    made, options = plan(planned("a"), planned("b")), Options("x", seed=3, inject="alpha=0.25,beta=0.1")
    given = [orders.member(made, options, name, PLACED, tmp_path).injection for name in "ab"]
    assert [each.text for each in given if each] == ["alpha=0.25,beta=0.1"] * 2
    assert len({each.seed for each in given if each}) == len({each.folder for each in given if each}) == 2
    assert orders.run_spec(made, options, images(96), None, None).inject == "alpha=0.25,beta=0.1"
    assert orders.member(made, Options("x"), "a", PLACED, tmp_path).injection is None
    assert orders.run_spec(made, Options("x"), images(96), None, None).inject == ""
    assert orders.member(plan(planned("a")), options, "a", PLACED, tmp_path).injection is None


def test_rounds_of_local_steps_begin_with_the_predicted_speeds() -> None:
    workers = planned("a")._replace(computing_s=0.1), planned("b")
    made = plan(*workers, strategy="local-sgd")
    assert orders.run_spec(made, Options("x"), images(96), None, None).step_s == {"a": 0.1}
    assert orders.run_spec(plan(*workers), Options("x"), images(96), None, None).step_s == {}


def test_a_member_may_start_as_long_as_predicted_and_others_wait_for_it_and_for_an_evaluation() -> None:
    slow = planned("b")._replace(build_s=58.0, evaluation_s=0.01)
    made = plan(planned("a")._replace(evaluation_s=0.001), slow)
    placed = Placed(ReplicaSpec("torch", "net"))
    assert orders.member(made, Options(), "b", placed, Path("run")).starting_s == 60.0
    assert orders.wait_s(made, 10_000, 10_000) == 60.0 * FACTOR + 3.0 * 100.0
    assert orders.wait_s(plan(planned("a")), 10_000, 10_000) == FIRST_S + 1800.0


def test_the_test_set_decides_how_long_an_evaluation_may_take_and_may_be_larger_than_that_of_training() -> None:
    made = plan(planned("a")._replace(evaluation_s=0.01))
    assert orders.wait_s(made, 1_000, test_samples=60_000) == FIRST_S + 3.0 * 600.0
    assert orders.wait_s(made, 60_000, test_samples=1_000) == FIRST_S + 3.0 * 10.0
    assert orders.wait_s(made, 1_000, test_samples=None) == FIRST_S + 1800.0
    assert orders.wait_s(made, 100_000, test_samples=None) == FIRST_S + 3.0 * 1000.0


def test_others_wait_as_long_as_samples_arrive_and_a_stream_may_pause() -> None:
    streams = planned("a")._replace(cycle_s=640.0, computing_s=0.5, evaluation_s=0.001)
    assert orders.wait_s(plan(streams), 1_000, 1_000) == 640.0 * FACTOR + 3.0
    patient = plan(streams, stream="replay:rates=0.1,patience=200")
    assert orders.wait_s(patient, 1_000, 1_000) == 640.0 * FACTOR + 200.0 + 3.0


@pytest.mark.parametrize(
    ("strategy", "round_s"),
    [
        ("local-sgd:local=steps:every=500", 1000.0),
        ("local-sgd:local=speed:every=500", 1000.0),
        ("local-sgd:local=time:seconds=90", 90.0),
        ("local-sgd:local=time:seconds=1", 2.0),
    ],
)
def test_others_wait_for_the_local_steps_of_a_round(strategy: str, round_s: float) -> None:
    worker = planned("a")._replace(evaluation_s=0.001, computing_s=0.1)
    made = plan(worker, worker._replace(name="b"), strategy=strategy)
    assert orders.wait_s(made, 1_000, 1_000) == max(FIRST_S, round_s * FACTOR) + 3.0


def test_adam_has_no_momentum_to_give() -> None:
    adam = Strategy.from_text("parameter-server:optimizer=adam")
    with pytest.raises(PlanError, match="--momentum 0.9: adam has beta1 in its place; give --optimizer adam:beta1=0.9"):
        orders.check_momentum(Options("x", momentum=0.9), adam)
    orders.check_momentum(Options("x"), adam)
    orders.check_momentum(Options("x", momentum=0.9), plan(planned("a")).run.strategy)


def test_two_runs_do_not_share_a_file_in_a_device_s_cache(tmp_path: Path) -> None:
    names = {orders.cache_name(tmp_path / run, "checkpoint.npz") for run in ("one", "two")}
    assert len(names) == 2
    assert all(name.endswith("-checkpoint.npz") for name in names)


@pytest.mark.parametrize(("workers", "explicit"), [(1, 0.9), (2, 0.8), (3, 0.7), (10, 0.0), (12, 0.0)])
def test_asynchrony_takes_its_share_of_the_momentum(workers: int, explicit: float) -> None:
    assert orders.momentum(orders.Options("data"), workers) == pytest.approx(explicit)


def test_the_operators_momentum_is_taken_as_it_is() -> None:
    assert orders.momentum(orders.Options("data", momentum=0.5), 3) == 0.5


def test_workers_that_share_a_global_batch_have_their_parts_of_it_in_their_orders() -> None:
    workers = (planned("a")._replace(batch=80), planned("b")._replace(batch=16))
    shared = plan(*workers, batch=48, strategy="allreduce:aggregation=samples")
    order = orders.run_spec(shared, Options("x"), images(96), "ckpt", None)
    assert order.run.batch == 48
    assert order.batches == order.checkpoints.description["batches"] == {"a": 80, "b": 16}
    assert [orders.member(shared, Options("x"), name, PLACED, Path("run")).batch for name in "ab"] == [80, 16]


def test_workers_with_the_plans_batch_have_none_of_their_own() -> None:
    usual = plan(planned("a"), planned("b"))
    order = orders.run_spec(usual, Options("x"), images(96), "ckpt", None)
    assert order.batches == {} and "batches" not in order.checkpoints.description
    assert orders.member(usual, Options("x"), "b", PLACED, Path("run")).batch == 32


OPTIONS = Options(
    "images", 0.1, 0.9, 1e-4, "cosine", 5, 3, 10, 20, 5.0, True, "accuracy=0.9", 3, "labels=2",
    "alpha=0.5,beta=0.25",
)  # fmt: skip


@MUTATIONS
@given(st.data())
def test_damaged_options_are_refused_or_read(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.getbasetemp() / "options.json"
    path.write_text(written(data.draw(mutated(json_value(OPTIONS)))), encoding="utf-8", errors="replace")
    with contextlib.suppress(RecordError, PlanError):
        orders.check(load(Options, path))
