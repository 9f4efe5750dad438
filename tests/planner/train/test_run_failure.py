"""A run that cannot go on is told one reason: what has happened, and not what follows from it."""

from types import SimpleNamespace
from typing import Any

import pytest

from backends.frameworks.process_group import BROKEN
from backends.protocol.events import Dropped, Joined, Left, MemberProgress, RunAccount
from backends.training.stopping import STREAMS_ENDED
from planner.errors import AgentError, DeviceLostError, JobError
from planner.train.run_failure import CAUSE_S, RunFailure

MISSES_ANOTHER = AgentError(f"tx2: {BROKEN}: Connection reset by peer")


class Judged(RunFailure):
    """The failures of members ``a`` and ``b``, and a clock that stands still."""

    def __init__(self, needs_all: bool) -> None:
        self.now_s = 0.0
        self.members: dict[str, Any] = {name: SimpleNamespace(error=None) for name in "ab"}
        super().__init__("tx2", self.members, needs_all, lambda: self.now_s)


def test_nothing_has_failed_at_first() -> None:
    assert Judged(needs_all=True).reason(None) is Judged(needs_all=False).reason(None) is None


def test_what_the_host_ended_with_is_the_reason() -> None:
    run = Judged(needs_all=False)
    assert run.reason(AgentError("tx2: serve: no memory")) == "tx2: serve: no memory"
    lost = run.reason(DeviceLostError("tx2: Connection reset by peer"))
    assert lost == "the server on tx2 is lost: tx2: Connection reset by peer"


def test_a_run_goes_on_until_nobody_works() -> None:
    run = Judged(needs_all=False)
    run.members["a"].error = DeviceLostError("a: its device is gone")
    assert run.reason(None) is None
    run.members["b"].error = AgentError("b: no memory")
    assert run.reason(None) == "a: its device is gone; b: no memory"


def test_a_member_without_samples_does_not_work_unless_it_came_back() -> None:
    run = Judged(needs_all=False)
    run.members["a"].error = DeviceLostError("a: its device is gone")
    run.hear(Left("b", "the stream has ended"))
    assert run.reason(None) == "a: its device is gone"
    run.hear(Joined("b"))
    assert run.reason(None) is None


def without_samples(steps: int, reason: str | None = STREAMS_ENDED) -> RunAccount:
    row = MemberProgress(steps, None, 0, None, True)
    return RunAccount(steps, 100, 1.0, {"a": row}, False, reason)


@pytest.mark.parametrize(
    ("left", "steps", "told"),
    [
        (Left("a", "/data: no sample has arrived for 60 s"), 0, "a: /data: no sample has arrived for 60 s"),
        (Left("a", "/data: no sample has arrived for 60 s"), 40, None),
        (Left("a", "the stream has ended, after 3 samples"), 0, "a: the stream has ended, after 3 samples"),
        (Left("a", "/data: it is gone", fault=True), 40, "a: /data: it is gone"),
    ],
)
def test_a_run_without_any_sample_or_whose_source_is_gone_has_failed(left: Left, steps: int, told: str | None) -> None:
    run = Judged(needs_all=False)
    run.hear(left)
    assert run.of_streams(without_samples(steps)) == told
    assert run.of_streams(without_samples(steps, reason=None)) is None


@pytest.mark.parametrize("needs_all", [False, True])
def test_an_error_in_the_users_code_ends_a_run_though_others_work(needs_all: bool) -> None:
    run = Judged(needs_all)
    run.members["b"].error = JobError("b: KeyError: 'x', at /home/me/train.py:3")
    assert run.reason(None) == "b: KeyError: 'x', at /home/me/train.py:3"


def test_a_member_with_another_model_ends_a_run_though_others_work() -> None:
    run = Judged(needs_all=False)
    run.hear(Dropped("b", "its model is not the run's", unfit=True))
    assert run.reason(None) == "b: its model is not the run's"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("b: parameter server closed the connection", "b: it was silent"),
        ("b: the agent ended (it last said: Killed)", "b: the agent ended (it last said: Killed)"),
    ],
)
def test_a_member_is_given_up_for_the_hosts_reason_where_that_sent_it_away(said: str, told: str) -> None:
    run = Judged(needs_all=False)
    run.members["b"].error = DeviceLostError(said)
    run.hear(Dropped("b", "it was silent"))
    assert run.of_member("b") == told


def test_where_all_are_needed_the_one_that_died_is_named_and_not_those_that_miss_it() -> None:
    run = Judged(needs_all=True)
    run.members["a"].error = AgentError(f"a: {BROKEN}")
    assert run.reason(MISSES_ANOTHER) is None
    run.members["b"].error = DeviceLostError("b: the agent ended")
    assert run.reason(MISSES_ANOTHER) == "b: the agent ended"
    run.members["b"].error = JobError("b: KeyError: 'x'")
    run.members["a"].error = DeviceLostError("a: the agent ended")
    assert run.reason(None) == "b: KeyError: 'x'"


def test_an_exchange_that_broke_off_without_a_cause_is_the_reason_in_the_end() -> None:
    run = Judged(needs_all=True)
    assert run.reason(MISSES_ANOTHER) is None
    run.now_s = CAUSE_S + 1.0
    assert run.reason(MISSES_ANOTHER) == str(MISSES_ANOTHER)
