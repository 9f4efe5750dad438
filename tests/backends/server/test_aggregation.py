"""Aggregation decides which gradients change the weights together."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as some

from backends.server.aggregation import Aggregator, WorkerGradient
from backends.strategies.message import dense
from backends.strategies.synchronisation import SYNC_POLICIES, SyncPolicy


def gradient(worker: str, batch: int = 8) -> WorkerGradient:
    return WorkerGradient(worker, dense(np.zeros(1, np.float32)), 0, 1.0, batch, 0.1)


def aggregator(policy: str, *workers: str) -> Aggregator:
    made = Aggregator(SyncPolicy.from_text(policy))
    made.set_members(workers)
    return made


def names(gradients: list[WorkerGradient]) -> list[str]:
    return [each.worker for each in gradients]


def test_a_synchronous_round_is_one_gradient_of_each_worker() -> None:
    made = aggregator("synchronous", "a", "b")
    made.add_gradient(gradient("a"))
    assert made.take_round(10) == []
    assert not made.may_begin("a")
    made.add_gradient(gradient("b"))
    assert names(made.take_round(10)) == ["a", "b"]
    assert made.may_begin("a") and made.may_begin("b")


def test_the_last_round_may_have_fewer_gradients() -> None:
    made = aggregator("synchronous", "a", "b", "c")
    made.add_gradient(gradient("b"))
    assert names(made.take_round(1)) == ["b"]


def test_a_worker_that_leaves_is_not_waited_for_and_its_gradient_is_dropped() -> None:
    made = aggregator("synchronous", "a", "b", "c")
    made.add_gradient(gradient("a"))
    made.add_gradient(gradient("b"))
    made.set_members(("a", "c"))
    assert made.take_round(10) == []
    made.set_members(("a",))
    assert names(made.take_round(10)) == ["a"]


def test_a_worker_that_joins_begins_beside_the_slowest() -> None:
    made = aggregator("bounded:staleness=1", "a")
    for _ in range(5):
        made.add_gradient(gradient("a"))
        made.take_round(10)
    made.set_members(("a", "b"))
    assert made.may_begin("a") and made.may_begin("b")


def test_the_mean_batch_is_that_of_the_last_gradients_of_workers_that_are_there() -> None:
    made = aggregator("asynchronous", "a", "b")
    for worker, batch in (("a", 8), ("b", 24), ("a", 16)):
        made.add_gradient(gradient(worker, batch))
    assert made.mean_batch == 20
    made.set_members(("a",))
    assert made.mean_batch == 16


@given(policy=some.sampled_from(sorted(SYNC_POLICIES)), order=some.lists(some.sampled_from("abc"), max_size=60))
def test_some_worker_may_always_begin_and_no_gradient_is_lost(policy: str, order: list[str]) -> None:
    made, added, applied = aggregator(policy, *"abc"), 0, 0
    for worker in order:
        able = [each for each in "abc" if made.may_begin(each)]
        assert able
        made.add_gradient(gradient(worker if worker in able else able[0]))
        added += 1
        applied += len(made.take_round(100))
    assert applied + len(made.take_round(100, nobody_else_comes=True)) == added
