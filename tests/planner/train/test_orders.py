"""Orders follow from the options, the plan and the data set."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backends.data import dataset
from backends.frameworks.base import OptimizerSettings
from backends.training.lr_schedule import RateSchedule
from planner.errors import PlanError, RunError
from planner.train import orders
from planner.train.orders import Options
from tests.planner.plans import plan, planned


def numbered(count: int = 120) -> dataset.Dataset:
    """Images whose only pixel tells them apart."""
    images = np.arange(count, dtype=np.uint8).reshape(count, 1, 1, 1)
    return dataset.Dataset(images, np.zeros(count, np.int64), images[:1], np.zeros(1, np.int64), 2)


def dealt(shards: dict[str, orders.Shard]) -> dict[str, list[int]]:
    return {name: dataset.unpack(shard.content)[0].ravel().tolist() for name, shard in shards.items()}


# -- data ------------------------------------------------------------------------------------------


def test_shards_are_as_large_as_the_expected_steps_and_share_no_image() -> None:
    parts = dealt(orders.shards(numbered(), ["a", "b"], {"a": 30.0, "b": 10.0}, seed=0))
    assert {name: len(part) for name, part in parts.items()} == {"a": 90, "b": 30}
    assert sorted(parts["a"] + parts["b"]) == list(range(120))


def test_a_worker_that_no_step_is_expected_of_still_has_data() -> None:
    parts = dealt(orders.shards(numbered(), ["a", "b"], {"a": 30.0, "b": 0.0}, seed=0))
    assert len(parts["b"]) == 1


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(0.0, 1e5), min_size=1, max_size=6), st.integers(0, 2**31 - 1))
def test_nothing_is_lost_and_the_same_seed_deals_the_same(steps: list[float], seed: int) -> None:
    names = [f"d{i}" for i in range(len(steps))]
    by_name = dict(zip(names, steps, strict=True))
    first, again = (orders.shards(numbered(), names, by_name, seed) for _ in range(2))
    assert sorted(sum(dealt(first).values(), [])) == list(range(120))
    assert first == again


def test_equal_content_has_an_equal_name_so_that_it_is_sent_once() -> None:
    same, other = numbered(10), numbered(11)
    names = [orders.packed(d.train_images, d.train_labels).name for d in (same, same, other)]
    assert names[0] == names[1] != names[2]


def test_a_missing_data_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=f"no directory {tmp_path}/none; give the one that holds the images"):
        orders.load_dataset(str(tmp_path / "none"))


# -- options ---------------------------------------------------------------------------------------


def test_the_defaults_pass() -> None:
    orders.check(Options("somewhere"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schedule": "cosin"}, '--schedule cosin: unknown; did you mean "cosine"'),
        ({"rate": 0.0}, "--learning-rate 0: give a finite number above 0"),
        ({"rate": math.nan}, "--learning-rate nan: give a finite number above 0"),
        ({"heartbeat_s": -1.0}, "--heartbeat -1: give a finite number above 0"),
        ({"momentum": 1.0}, "--momentum 1: give a number from 0 to below 1"),
        ({"momentum": math.nan}, "--momentum nan: give a number from 0 to below 1"),
        ({"weight_decay": -0.1}, "--weight-decay -0.1: give a finite number of at least 0"),
    ],
)
def test_an_option_out_of_range_is_named_with_what_would_do(changes: dict[str, float], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        orders.check(Options("somewhere")._replace(**changes))


# -- orders ----------------------------------------------------------------------------------------


def test_left_to_itself_a_run_saves_ten_times_and_evaluates_once_an_epoch() -> None:
    order = orders.run_spec(plan(planned("a"), steps=1000), Options("x"), numbered(96), "ckpt", None)
    assert (order.checkpoint_every, order.evaluate_every) == (100, 3)
    tiny = orders.run_spec(plan(planned("a"), steps=3), Options("x"), numbered(8), "ckpt", None)
    assert (tiny.checkpoint_every, tiny.evaluate_every) == (1, 1)


def test_what_the_operator_asks_for_wins() -> None:
    options = Options("x", rate=0.1, schedule="cosine", warmup=5, evaluate_every=7, checkpoint_every=11)
    order = orders.run_spec(plan(planned("a")), options, numbered(), "ckpt", "before")
    assert (order.checkpoint_every, order.evaluate_every, order.resume) == (11, 7, "before")
    assert order.optimizer == OptimizerSettings(0.1, 0.9, 0.0)
    assert order.schedule == RateSchedule("cosine", order.steps, 5)


def test_two_runs_do_not_share_a_file_in_a_device_s_cache(tmp_path: Path) -> None:
    names = {orders.cache_name(tmp_path / run, "checkpoint.npz") for run in ("one", "two")}
    assert len(names) == 2
    assert all(name.endswith("-checkpoint.npz") for name in names)


@pytest.mark.parametrize(("workers", "explicit"), [(1, 0.9), (2, 0.8), (3, 0.7), (10, 0.0), (12, 0.0)])
def test_asynchrony_takes_its_share_of_the_momentum(workers: int, explicit: float) -> None:
    assert orders.momentum(orders.Options("data"), workers) == pytest.approx(explicit)


def test_the_operators_momentum_is_taken_as_it_is() -> None:
    assert orders.momentum(orders.Options("data", momentum=0.5), 3) == 0.5
