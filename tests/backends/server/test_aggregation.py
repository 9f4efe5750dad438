"""Which gradients change the weights together."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as some

from backends.server.aggregation import Aggregator, WorkerGradient
from backends.strategies.message import dense
from backends.strategies.synchronisation import SYNC_POLICIES, SyncPolicy
from backends.training.member_stats import MemberStats


def gradient(worker, batch=8):
    return WorkerGradient(worker, MemberStats(), dense(np.zeros(1, np.float32)), 0, 1.0, batch, 0.1)


def rounds(text, *workers):
    made = Aggregator(SyncPolicy.from_text(text))
    for worker in workers:
        made.join(worker)
    return made


def names(gradients):
    return [each.worker for each in gradients]


def test_a_synchronous_round_is_one_gradient_of_each() -> None:
    made = rounds("synchronous", "a", "b")
    made.bring(gradient("a"))
    assert made.take(10) == []
    assert not made.may_begin("a")
    made.bring(gradient("b"))
    assert names(made.take(10)) == ["a", "b"]
    assert made.may_begin("a") and made.may_begin("b")


def test_without_waiting_every_gradient_is_a_round() -> None:
    made = rounds("asynchronous", "a", "b")
    made.bring(gradient("a"))
    assert names(made.take(10)) == ["a"]


def test_the_last_round_may_have_fewer() -> None:
    made = rounds("synchronous", "a", "b", "c")
    made.bring(gradient("b"))
    assert names(made.take(1)) == ["b"]


def test_who_leaves_is_not_waited_for_and_takes_its_gradient_along() -> None:
    made = rounds("synchronous", "a", "b", "c")
    made.bring(gradient("a"))
    made.bring(gradient("b"))
    made.leave("b")
    assert made.take(10) == []
    made.leave("c")
    assert names(made.take(10)) == ["a"]


def test_one_that_joins_begins_beside_the_slowest() -> None:
    made = rounds("bounded:staleness=1", "a")
    for _ in range(5):
        made.bring(gradient("a"))
        made.take(10)
    made.join("b")
    assert made.may_begin("a") and made.may_begin("b")


@given(gate=some.sampled_from(sorted(SYNC_POLICIES)), order=some.lists(some.sampled_from("abc"), max_size=60))
def test_somebody_may_always_begin_and_nothing_is_lost(gate: str, order: list[str]) -> None:
    made, brought, applied = rounds(gate, *"abc"), 0, 0
    for worker in order:
        able = [each for each in "abc" if made.may_begin(each)]
        assert able
        made.bring(gradient(worker if worker in able else able[0]))
        brought += 1
        applied += len(made.take(100))
    assert applied + len(made.take(100, all_there=True)) == brought
