"""Who failed is started again after growing pauses, unless it would fail again."""

from typing import Any

from backends.protocol.events import MemberTelemetry, TimeSpent
from planner.errors import AgentError, DeviceLostError, JobError
from planner.run.restarts import ABSENCES, ATTEMPTS, LONGEST_PAUSE_S, Restarts
from profilers.records.readings import Window

NO_AGENT: Any = None
GONE, NO_MEMORY = DeviceLostError("tx2: the agent ended"), AgentError("tx2: no memory")


def of_member(steps: int = 0) -> Restarts:
    """Of a member that has made so many steps."""
    restarts = Restarts(NO_AGENT)
    restarts.hear(MemberTelemetry(Window(1.0, {}, ()), TimeSpent(steps)))
    return restarts


def test_pauses_grow_until_it_is_given_up() -> None:
    restarts = of_member()
    assert [restarts.pause_s(GONE, reached=True) for _ in range(ATTEMPTS)] == [2.0, 4.0, 8.0, 15.0, None]


def test_failures_count_from_the_last_step() -> None:
    restarts = of_member()
    assert [restarts.pause_s(GONE, reached=True) for _ in range(2)] == [2.0, 4.0]
    restarts.hear(MemberTelemetry(Window(1.0, {}, ()), TimeSpent(3)))
    assert [restarts.pause_s(GONE, reached=True) for _ in range(2)] == [2.0, 4.0]


def test_a_device_may_be_away_for_longer() -> None:
    restarts = of_member(steps=3)
    pauses = [restarts.pause_s(GONE, reached=False) for _ in range(ABSENCES)]
    assert pauses[0] == 2.0 and set(pauses[3:-1]) == {LONGEST_PAUSE_S} and pauses[-1] is None


def test_what_never_worked_and_a_faulty_job_would_fail_again() -> None:
    assert of_member().pause_s(NO_MEMORY, reached=True) is None
    assert of_member(steps=3).pause_s(NO_MEMORY, reached=True) == 2.0
    assert of_member(steps=3).pause_s(JobError("tx2: KeyError"), reached=True) is None
