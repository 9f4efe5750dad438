"""Exactly the asked-for steps are made, whoever comes and goes."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as some

from backends.hosting.step_queue import StepCounter, StepQueue, WorkItem
from backends.protocol.frames import EVALUATE, FINISH, STEP


def queue_of(total, evaluate_every=0, made=0, evaluated=0):
    counter = StepCounter(total, evaluate_every)
    counter.resume(made, evaluated)
    return StepQueue(counter)


def alone(queue):
    """What a single worker is told to do, to the end."""
    told = []
    while (item := queue.take("a")).kind != FINISH:
        told.append((item.kind, item.step))
        queue.complete("a")
    return told


def test_it_evaluates_whenever_a_multiple_has_been_passed_and_at_the_end_once():
    told = alone(queue_of(6, evaluate_every=2))
    assert [step for kind, step in told if kind == EVALUATE] == [2, 4, 6]


@pytest.mark.parametrize(
    ("done", "evaluated", "evaluations"),
    [(5, 4, [6, 8]), (4, 2, [4, 6, 8]), (4, 4, [6, 8]), (5, 0, [5, 6, 8]), (8, 6, [8]), (8, 8, [])],
)
def test_a_resumed_run_evaluates_what_had_not_been_evaluated(done, evaluated, evaluations):
    told = alone(queue_of(8, 2, done, evaluated))
    assert [step for kind, step in told if kind == STEP] == list(range(done, 8))
    assert [step for kind, step in told if kind == EVALUATE] == evaluations


def test_a_checkpoint_that_falls_due_in_the_last_round_is_left_to_the_end():
    counter = StepCounter(8, 0, 7)
    for _ in range(8):
        counter.count_steps(1)
    assert not counter.take_due_save()


def test_checkpoints_fall_due_by_the_clock_where_steps_have_been_made_since_the_last():
    counter = StepCounter(8, save_every_s=60.0)
    due = []
    for elapsed_s, steps in [(59.0, 1), (61.0, 0), (100.0, 1), (121.0, 0), (190.0, 0), (191.0, 1), (900.0, 5)]:
        counter.count_steps(steps)
        counter.see_clock(elapsed_s)
        due.append(counter.take_due_save())
    assert due == [False, True, False, True, False, True, False]  # the last is made at the end


@pytest.mark.parametrize(("took_s", "rests_s"), [(0.0, 60.0), (5.0, 60.0), (20.0, 180.0)])
def test_checkpoints_rest_from_the_end_of_one_to_the_next_nine_times_as_long_as_it_took(took_s, rests_s):
    counter = StepCounter(8, save_every_s=60.0)
    counter.count_steps(1)
    counter.see_clock(60.0)
    assert counter.take_due_save()
    counter.end_save(60.0 + took_s)
    counter.count_steps(1)
    counter.see_clock(60.0 + took_s + rests_s - 1.0)
    assert not counter.take_due_save()
    counter.see_clock(60.0 + took_s + rests_s)
    assert counter.take_due_save()


def test_a_resumed_run_has_made_steps_when_it_has_made_its_own():
    counter = StepCounter(8, save_every_s=60.0)
    counter.resume(4, 0)
    counter.see_clock(61.0)
    assert not counter.take_due_save() and not counter.has_made_steps
    counter.count_steps(1)
    counter.see_clock(61.0)
    assert counter.take_due_save() and counter.has_made_steps


def test_a_run_that_has_made_more_steps_than_asked_is_refused():
    with pytest.raises(ValueError, match="9 steps are done already, more than the run's 8"):
        queue_of(8, made=9)


def test_a_worker_that_waits_gets_what_another_abandons():
    queue = queue_of(1)
    queue.take("a")
    got = []
    waiting = threading.Thread(target=lambda: got.append(queue.take("b")))
    waiting.start()
    queue.abandon("a")
    waiting.join()
    assert got == [WorkItem(STEP, 0)]


def test_items_of_workers_that_have_left_go_to_others():
    queue = queue_of(2)
    queue.take("a")
    queue.take("b")
    queue.set_members(("b",))
    assert queue.take("c") == WorkItem(STEP, 1)
    assert queue.complete("b") == 1


@pytest.mark.parametrize("release", ["stop", "wake"])
def test_a_worker_that_waits_is_told_to_finish_when_the_run_stops_or_it_is_gone(release):
    queue = queue_of(1)
    queue.take("a")
    got, gone = [], threading.Event()
    waiting = threading.Thread(target=lambda: got.append(queue.take("b", gone.is_set)))
    waiting.start()
    gone.set()
    getattr(queue, release)()
    waiting.join()
    assert [item.kind for item in got] == [FINISH]


def test_a_step_that_is_completed_after_the_stop_counts():
    queue = queue_of(5)
    queue.take("a")
    queue.stop()
    assert queue.complete("a") == 1
    assert not queue.finished
    assert queue.wait(0)


@given(
    total=some.integers(0, 12),
    every=some.integers(0, 5),
    moves=some.lists(some.tuples(some.sampled_from("abc"), some.booleans()), max_size=80),
)
def test_any_interleaving_ends_with_exactly_the_asked_for_steps(total, every, moves):
    """In a move, a worker takes an item if it need not wait, or completes or abandons its own."""
    queue = queue_of(total, evaluate_every=every)
    held, made, evaluated = {}, 0, []

    def move(worker, completes):
        nonlocal made
        if worker not in held:
            # Where it would have to wait, ``gone`` sends it home with FINISH instead.
            item = WorkItem(FINISH, 0) if queue._next() is None else queue.take(worker)
            if item.kind != FINISH:
                held[worker] = item
        elif completes:
            item = held.pop(worker)
            made += item.kind == STEP
            evaluated.extend([item.step] if item.kind == EVALUATE else [])
            assert queue.complete(worker) == made
        else:
            del held[worker]
            queue.abandon(worker)
        assert made + sum(item.kind == STEP for item in held.values()) <= total

    for worker, completes in moves:
        move(worker, completes)
    for _ in range(200):
        for worker in "abc":
            move(worker, True)
    assert queue.finished
    assert made == total
    assert evaluated == sorted(set(evaluated))
    assert evaluated[-1:] == ([total] if total else [])
