"""A batch policy gives members equal batches, or by their throughput, or by their streams."""

from pathlib import Path

import pytest

from backends.streams.spec import StreamSpec
from backends.training.batch_size import BATCH_POLICIES, ArrivingBatches, BatchPolicy, DynamicBatches
from tests.backends.fakes import run_spec


def run(policy: DynamicBatches, sample_s: dict[str, float], iterations: int) -> None:
    for _ in range(iterations):
        for name, cost in sample_s.items():
            batch = policy.batch(name)
            policy.record(name, batch, cost * batch)


@pytest.mark.parametrize("kind", BATCH_POLICIES)
def test_a_restored_policy_gives_the_same_batches(kind: str, tmp_path: Path) -> None:
    spec = run_spec(tmp_path, batch=32, members=2, training_samples=100_000, seed=1)
    made, again = (BATCH_POLICIES[kind](spec) for _ in range(2))
    for policy in (made, again):
        policy.set_members(("a", "b"))
    for _ in range(5):
        for name in "ab":
            made.record(name, made.batch(name), 0.1)
    again.restore(made.state())
    for name in "ab":
        for policy in (made, again):
            policy.record(name, 32, 0.1)
    assert [again.batch(name) for name in "ab"] == [made.batch(name) for name in "ab"]
    assert all(made.batch(name) >= 1 for name in "ab")


def test_a_member_three_times_as_fast_gets_three_times_as_many_samples() -> None:
    policy = DynamicBatches(32, 2, 100_000)
    policy.set_members(("a", "b"))
    run(policy, {"a": 0.001, "b": 0.003}, 10)
    assert (policy.batch("a"), policy.batch("b")) == (48, 16)


def test_a_device_that_slows_gets_fewer() -> None:
    policy = DynamicBatches(32, 2, 100)  # too few samples for the global batch to grow
    policy.set_members(("a", "b"))
    run(policy, {"a": 0.001, "b": 0.001}, 40)
    assert policy.batch("a") == policy.batch("b") == 32
    run(policy, {"a": 0.001, "b": 0.004}, 60)
    assert policy.batch("a") > 2 * policy.batch("b")


def test_the_global_batch_grows_with_the_iterations_of_all() -> None:
    policy = DynamicBatches(32, 2, 100_000)
    policy.set_members(("a", "b"))
    run(policy, {"a": 0.001, "b": 0.001}, 60)
    assert policy.batch("a") + policy.batch("b") == 64 + 2 * 32


def test_the_share_of_a_member_that_leaves_goes_to_the_others() -> None:
    policy = DynamicBatches(32, 2, 100)
    policy.set_members(("a", "b"))
    run(policy, {"a": 0.001, "b": 0.001}, 5)
    policy.set_members(("a",))
    policy.record("b", 32, 0.1)
    run(policy, {"a": 0.001}, 5)
    assert policy.batch("a") == 64


def test_planned_batches_are_those_of_each_member_and_of_another_the_usual_one() -> None:
    policy = BatchPolicy(32, {"a": 50, "b": 14})
    policy.set_members(("a", "b", "new"))
    policy.record("a", 50, 9.0)
    assert [policy.batch(name) for name in ("a", "b", "new")] == [50, 14, 32]
    assert policy.state() == {}


def arriving() -> BatchPolicy:
    policy = ArrivingBatches(32, StreamSpec.from_text("replay:S1,least=4,most=100"))
    policy.set_members(("a", "b"))
    return policy


def test_with_streams_a_batch_is_what_was_measured_to_arrive_at_that_device_in_a_second() -> None:
    policy = arriving()
    policy.record_rate("a", None)
    assert (policy.batch("a"), policy.batch("b")) == (32, 32)
    policy.record_rate("a", 60.4)
    policy.record_rate("b", 1e6)
    policy.set_members(("0", "a"))  # others come and go
    assert (policy.batch("0"), policy.batch("a"), policy.batch("b")) == (32, 60, 100)
    policy.record_rate("a", 0.0)
    assert policy.batch("a") == 4


def test_the_rates_that_were_measured_are_in_the_checkpoint() -> None:
    policy, again = arriving(), arriving()
    policy.record_rate("a", 60.4)
    again.restore(policy.state())
    assert (again.batch("a"), again.batch("b")) == (60, 32)
