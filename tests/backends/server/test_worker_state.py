"""What workers keep is asked for when a checkpoint is due, and nobody goes on before all of it is there."""

import numpy as np
import pytest

from backends.network.framing import WireError
from backends.server.worker_state import WorkerStates, described, room

ONE = (np.arange(3, dtype=np.float32), np.array([2.0]))


def test_arrays_are_told_and_made_room_for() -> None:
    made = room(described(ONE), 1000)
    assert [(array.dtype, array.shape) for array in made] == [(array.dtype, array.shape) for array in ONE]


@pytest.mark.parametrize(
    "told", [[["<f4", [1000]]], [["O", [1]]], [["<f4", [-1]]], "no", [["<f4"]], None, [["x", [1]]]]
)
def test_what_is_not_numbers_or_too_many_is_refused(told: object) -> None:
    with pytest.raises(WireError, match="cannot keep"):
        room(told, 1000)


def test_where_nobody_keeps_anything_there_is_nothing_to_wait_for() -> None:
    keeping = WorkerStates({})
    assert keeping.join("a", []) == ()
    assert not keeping.ask()
    assert keeping.may_begin("a") and not keeping.complete()


def test_who_has_brought_it_waits_for_the_others() -> None:
    keeping = WorkerStates({})
    for name in "ab":
        keeping.join(name, described(ONE))
    assert keeping.ask()
    assert keeping.asked("a") and keeping.asked("b")
    keeping.bring("a", ONE)
    assert not keeping.may_begin("a") and keeping.may_begin("b")
    assert not keeping.complete()
    keeping.bring("b", ONE)
    assert keeping.complete()
    keeping.clear()
    assert keeping.may_begin("a") and set(keeping.kept) == {"a", "b"}


def test_who_leaves_is_not_waited_for() -> None:
    keeping = WorkerStates({})
    for name in "ab":
        keeping.join(name, described(ONE))
    keeping.ask()
    keeping.bring("a", ONE)
    keeping.leave("b")
    assert keeping.complete()


def test_a_resumed_worker_gets_what_it_kept_but_not_in_its_next_life() -> None:
    keeping = WorkerStates({"a": ONE, "b": ONE})
    assert keeping.join("a", described(ONE)) == ONE
    assert keeping.join("a", described(ONE)) == ()
    assert keeping.join("b", described(ONE[:1])) == ()  # of another strategy
