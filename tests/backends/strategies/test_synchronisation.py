"""When to go on: nobody gets further ahead than allowed, and nobody waits for ever."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from backends.strategies.synchronisation import SYNC_POLICIES, SyncPolicy

KINDS = ("synchronous", "asynchronous", "bounded:staleness=0", "bounded:staleness=3", "backup", "backup:backups=2")


def goes_on(policy, worker, done):
    """Whether a worker that has sent what it computed may begin its next step.

    ``done``: the steps of each worker, all of whose messages have arrived.
    """
    others = [steps for other, steps in done.items() if other != worker]
    arrived = sum(steps >= done[worker] for steps in done.values())
    return policy.enough(arrived, len(done)) and policy.may_begin(done[worker], others)


def steps_beside(stuck, policy, n):
    """Steps that a worker gets done, at most 50, while ``stuck`` of the n never end their first."""
    done = dict.fromkeys(range(n), 0)
    for _ in range(50):
        for worker in range(n - stuck):
            if goes_on(policy, worker, done):
                done[worker] += 1
    return done[0]


def test_synchronous_workers_wait_for_all_of_the_step():
    policy = SyncPolicy.from_text("synchronous")
    assert policy.may_begin(3, [3, 4])
    assert not policy.may_begin(4, [4, 3])
    assert [policy.enough(arrived, 4) for arrived in (1, 3, 4)] == [False, False, True]


def test_bounded_staleness_lets_one_be_so_many_steps_ahead():
    policy = SyncPolicy.from_text("bounded:staleness=5")
    assert policy.may_begin(5, [0, 9])
    assert not policy.may_begin(6, [0, 9])


def test_backup_workers_are_not_waited_for_but_not_left_behind_either():
    policy = SyncPolicy.from_text("backup")
    assert policy == SyncPolicy(staleness=5, backups=1)
    assert [policy.enough(arrived, 4) for arrived in (2, 3)] == [False, True]
    assert policy.may_begin(5, [0, 5])
    assert not policy.may_begin(6, [0, 6])


@pytest.mark.parametrize(
    ("text", "waits"), [("synchronous", 6), ("asynchronous", 1), ("bounded", 1), ("backup", 5), ("backup:backups=9", 1)]
)
def test_each_kind_says_how_many_of_six_messages_a_step_waits_for(text, waits):
    assert SyncPolicy.from_text(text).waits_for(6) == waits


@pytest.mark.parametrize(
    ("stuck", "text", "steps"),
    [
        (1, "synchronous", 1),
        (1, "bounded:staleness=2", 3),
        (1, "backup", 6),
        (2, "backup", 1),
        (1, "backup:staleness=0", 1),
        (2, "asynchronous", 50),
    ],
)
def test_so_far_the_others_get_while_some_are_stuck(stuck, text, steps):
    assert steps_beside(stuck, SyncPolicy.from_text(text), 4) == steps


@settings(max_examples=200, deadline=None)
@given(
    policy=some.sampled_from(KINDS).map(SyncPolicy.from_text),
    n=some.integers(1, 6),
    choices=some.lists(some.tuples(some.integers(0, 20), some.integers(0, 60)), max_size=150),
)
def test_in_any_state_somebody_goes_on_and_nobody_is_too_far_ahead(policy, n, choices):
    """Workers begin and end steps, and leave, in any order that the policy allows."""
    done, computing = dict.fromkeys(range(n), 0), set()
    for event, choice in choices:
        if event == 0 and len(done) > 1:
            gone = sorted(done)[choice % len(done)]
            del done[gone]
            computing.discard(gone)
            continue
        ready = [worker for worker in done if worker not in computing and goes_on(policy, worker, done)]
        able = sorted(computing) + ready
        assert able
        worker = able[choice % len(able)]
        if worker in computing:
            computing.remove(worker)
            done[worker] += 1
        else:
            computing.add(worker)
        slowest = min(done.values())
        assert all(done[each] - slowest <= policy.staleness for each in computing)
        assert max(done.values()) - slowest <= policy.staleness + 1


@settings(max_examples=100, deadline=None)
@given(
    policy=some.sampled_from(KINDS).map(SyncPolicy.from_text),
    done=some.lists(some.integers(0, 9), min_size=1, max_size=6),
)
def test_the_slowest_may_always_begin(policy, done):
    assert goes_on(policy, done.index(min(done)), dict(enumerate(done)))


def test_every_kind_can_be_named_without_options():
    assert {name: SyncPolicy.from_text(name) for name in SYNC_POLICIES} == SYNC_POLICIES
    assert SyncPolicy.from_text("asynchronous") == SyncPolicy(math.inf, math.inf)
    assert SyncPolicy.from_text("backup:staleness=7,backups=2") == SyncPolicy(7, 2)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("sometimes", "unknown sync 'sometimes'; known: synchronous, asynchronous, bounded, backup"),
        ("synchronous:staleness=1", "with a key of none"),
        ("bounded:staleness=-1", "staleness is a whole number from 0 on, not '-1'"),
    ],
)
def test_what_does_not_fit_is_named_with_what_does(text, says):
    with pytest.raises(ValueError, match=says):
        SyncPolicy.from_text(text)
