"""Worker states are asked for when a checkpoint is due, and nobody goes on before all are there."""

import numpy as np

from backends.server.worker_state import WorkerStates
from backends.training.array_transfer import describe

STATE = (np.arange(3, dtype=np.float32), np.array([2.0]))


def with_workers(*names: str) -> WorkerStates:
    states = WorkerStates({})
    for name in names:
        states.introduce(name, describe(STATE))
    return states


def test_where_nobody_has_a_state_there_is_nothing_to_wait_for() -> None:
    states = WorkerStates({})
    assert states.introduce("a", ()) == ()
    assert not states.request()
    assert states.may_begin("a") and not states.complete()


def test_a_worker_that_has_handed_over_its_state_waits_for_the_others() -> None:
    states = with_workers("a", "b")
    assert states.request()
    assert states.is_requested("a") and states.is_requested("b")
    states.add("a", STATE)
    assert not states.may_begin("a") and states.may_begin("b")
    assert not states.complete()
    states.add("b", STATE)
    assert states.complete()
    states.release()
    assert states.may_begin("a") and set(states.latest) == {"a", "b"}


def test_a_worker_that_has_left_is_not_waited_for() -> None:
    states = with_workers("a", "b")
    states.request()
    states.add("a", STATE)
    states.set_members(("a",))
    assert states.complete()
    assert not states.is_stateful("b")


def test_a_resumed_worker_gets_its_state_but_not_when_it_comes_back() -> None:
    states = WorkerStates({"a": STATE, "b": STATE})
    assert states.introduce("a", describe(STATE)) == STATE
    assert states.introduce("a", describe(STATE)) == ()
    assert states.introduce("b", describe(STATE[:1])) == ()  # of another strategy
