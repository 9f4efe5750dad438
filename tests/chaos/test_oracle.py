"""The oracle accepts a sound run of every fault, and tells each way in which one is not."""

import math
from typing import Any

import pytest

from tests.chaos import oracle, scenario
from tests.chaos.journal import Replay
from tests.chaos.observed import Ended, Observed
from tests.chaos.scenario import Fault, Scenario

SOUND = Ended(0, "anna joined\n", 100, 100, None, Replay("", 100))
MADE = Observed(SOUND, 100, 100, 90, (), None, True, 1.0, 5.0, 8.0)


def case(kind: str = scenario.NOTHING, device: str = "bert", **changes: Any) -> Scenario:
    fault = Fault(kind, device, changes.pop("of_host", False), 0.5, changes.pop("lasts_s", math.inf))
    return Scenario(1, "planner", "allreduce", ("anna", "bert"), 100, 10, fault, (0.02, 0.06))._replace(**changes)


def failed(code: int, message: str, saved: int | None = 50) -> Observed:
    """A run that has ended early, and the one that went on from it."""
    end = Ended(code, f"anna joined\nplanner: {message}\n", None, saved, None, None)
    return MADE._replace(run=end, reached=52, written=50, carried=40, resumed=SOUND)


def test_a_run_that_feels_nothing_is_sound() -> None:
    assert oracle.violations(case(), MADE) == []


def test_whole_rounds_are_the_documented_surplus_of_peers_only() -> None:
    one_more = MADE._replace(run=SOUND._replace(saved=101, made=101))
    assert oracle.violations(case(), one_more) == []
    assert "saved are the weights of step 101" in oracle.violations(case(strategy="parameter-server"), one_more)[0]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"saved": 99}, "step 99"),
        ({"saved": None}, "step None"),
        ({"made": None}, "without a result"),
        ({"code": None}, "still running"),
        ({"code": 1}, "exit code 1, not 0"),
        ({"errors": "Traceback (most recent call last):\n"}, "traceback"),
        ({"errors": "planner: half of it is lost\n"}, "with the message"),
        ({"replay": Replay("two gradients of one device", 40)}, "two gradients"),
    ],
)
def test_each_flaw_of_a_run_that_should_succeed_is_told(changes: dict[str, Any], told: str) -> None:
    found = oracle.violations(case(), MADE._replace(run=SOUND._replace(**changes)))
    assert any(told in each for each in found)


def test_what_is_left_is_told() -> None:
    assert oracle.violations(case(), MADE._replace(left=("port 4711 of anna",))) == ["left behind: port 4711 of anna"]


def test_a_checkpoint_stays_where_nobody_could_remove_it_or_the_message_names_it() -> None:
    left = ("file cache-anna/planner/run-1-checkpoint.npz",)
    assert oracle.violations(case(), MADE._replace(left=left))
    for kind, device in ((scenario.OPERATOR_KILLED, "operator"), (scenario.CUT, "anna")):
        assert not any("left" in each for each in oracle.violations(case(kind, device), MADE._replace(left=left)))
    named = failed(1, "the server on anna is lost (still run-1-checkpoint.npz on anna); go on with --resume", 20)
    named = named._replace(run=named.run._replace(named=50), left=left)
    assert oracle.violations(case(scenario.KILL, "anna", of_host=True), named) == []


@pytest.mark.parametrize("kind", [scenario.KILL, scenario.CUT, scenario.HANG_STEP, scenario.MEMORY, scenario.SSHD])
def test_the_loss_of_a_member_costs_nothing_and_that_of_a_rank_ends_the_run(kind: str) -> None:
    assert oracle.violations(case(kind), MADE) == []
    ended = failed(1, "bert: lost; the last checkpoint is of step 50, go on with `planner train --resume runs/x`")
    assert oracle.violations(case(kind, engine="torch"), ended) == []
    assert oracle.violations(case(kind), ended)


def test_a_run_begins_with_all_members_or_names_the_one_that_it_lacks() -> None:
    early = case(scenario.KILL)
    early = early._replace(fault=early.fault._replace(after=0.0))
    unsaved = failed(1, "bert: the agent ended", None)._replace(reached=0, resumed=None)
    assert oracle.violations(early, unsaved) == oracle.violations(early, MADE) == []
    assert oracle.violations(early, unsaved._replace(run=unsaved.run._replace(errors="planner: somebody is lost\n")))


@pytest.mark.parametrize(
    ("message", "saved", "told"),
    [
        ("the server on anna is lost; go on with --resume", 30, "22 steps are lost"),
        ("somebody is lost; go on with --resume", 50, "does not name anna"),
        ("the server on anna is lost", 50, "how to go on"),
        ("the server on anna is lost; --resume\nplanner: no checkpoint; --resume", 50, "not one message"),
        ("the server on anna is lost; --resume\nanna joined", 50, "not one message"),
    ],
)
def test_each_flaw_of_a_run_whose_host_is_lost_is_told(message: str, saved: int, told: str) -> None:
    lost = case(scenario.KILL, "anna", of_host=True)
    assert oracle.violations(lost, failed(1, "the server on anna is lost; go on with --resume")) == []
    assert any(told in each for each in oracle.violations(lost, failed(1, message, saved)))


def test_a_checkpoint_that_was_on_its_way_may_be_lost_with_the_host_and_no_older_one() -> None:
    lost = case(scenario.KILL, "anna", of_host=True)
    message = "the server on anna is lost; go on with --resume"
    assert oracle.violations(lost, failed(1, message, 40)) == []
    assert oracle.violations(lost, failed(1, message, 30)) == ["22 steps are lost, not 12 at most"]
    assert oracle.violations(lost, failed(1, message, 40)._replace(written=38, carried=38))
    assert oracle.violations(case(scenario.ERROR_STEP), failed(1, "ZeroDivisionError; --resume", 40))


def test_an_error_of_the_job_loses_no_step_that_was_made() -> None:
    message = "bert: ZeroDivisionError; go on with --resume"
    assert oracle.violations(case(scenario.ERROR_STEP), failed(1, message)) == []
    assert "12 steps are lost" in oracle.violations(case(scenario.ERROR_STEP), failed(1, message, 40))[0]
    assert oracle.violations(case(scenario.ERROR_STEP), MADE)


def test_ctrl_c_keeps_the_last_weights_and_has_its_own_exit_code() -> None:
    interrupted = case(scenario.CTRL_C, "operator")
    assert oracle.violations(interrupted, failed(130, "stopped after step 50; go on with --resume")) == []
    assert oracle.violations(interrupted, failed(1, "stopped after step 50; go on with --resume"))
    assert oracle.violations(interrupted, failed(130, "stopped; go on with --resume", 40))


def test_a_fault_that_comes_after_the_end_excuses_nothing() -> None:
    late = failed(130, "stopped; go on with --resume")._replace(injected=False)
    assert oracle.violations(case(scenario.CTRL_C, "operator"), late)


def test_a_run_that_goes_on_is_judged_too() -> None:
    ended = failed(130, "stopped; go on with --resume")._replace(resumed=SOUND._replace(saved=90))
    assert "resumed: 100 steps asked for" in oracle.violations(case(scenario.CTRL_C, "operator"), ended)[0]
