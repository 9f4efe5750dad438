"""Figures follow from events; the expectations are worked out by hand."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from backends.protocol.events import (
    MemberProgress,
    MemberTelemetry,
    Progress,
    TimeSpent,
)  # fmt: skip
from planner.json_records import load
from planner.plan.file import Plan
from planner.run.supervisor import MemberLost
from planner.train.event_log import read
from planner.train.trackers.figures import MEANINGS, Figure, RunFigures
from profilers.records.readings import PowerReading, Window
from tests.planner.plans import plan, planned

RUNS = Path(__file__).resolve().parents[3] / "golden" / "runs"
A, B = planned("a"), planned("b")


def progress(done: int, elapsed_s: float, **workers: MemberProgress) -> Progress:
    return Progress(done, 100, elapsed_s, workers)


def telemetry(spent: TimeSpent, source: str = "sensor", watts: float | None = 30.0) -> MemberTelemetry:
    return MemberTelemetry(Window(10.0, {}, (PowerReading("plug", source, "wall", watts, 0.0, 5),)), spent)


def values(figures: Iterable[Figure]) -> dict[str, float]:
    """By name, with the worker or metric behind it."""
    return {"/".join(filter(None, (each.name, each.worker, each.metric))): each.value for each in figures}


def test_progress_gives_the_figures_of_the_run_and_of_each_worker() -> None:
    members = {"a": MemberProgress(6, 2.0, 70, 1.5, True), "b": MemberProgress(4, 4.0, 30, None, True)}
    assert values(RunFigures(plan(A, B)).of("server", progress(10, 5.0, **members))) == {
        "steps_done": 10, "steps_planned": 100, "elapsed_seconds": 5.0, "train_loss": 3.0,
        "worker_steps/a": 6, "worker_connected/a": 1, "worker_bytes/a": 70, "worker_loss/a": 2.0,
        "worker_staleness_steps/a": 1.5,
        "worker_steps/b": 4, "worker_connected/b": 1, "worker_bytes/b": 30, "worker_loss/b": 4.0,
    }  # fmt: skip


def test_a_lost_worker_and_one_without_a_loss_yet_do_not_count_in_the_training_loss() -> None:
    members = {
        "a": MemberProgress(6, 2.0, 0, None, True),
        "b": MemberProgress(4, 4.0, 0, None, False),
        "c": MemberProgress(0, None, 0, None, True),
    }
    found = values(RunFigures(plan(A, B)).of("server", progress(10, 5.0, **members)))
    assert (found["train_loss"], found["worker_connected/b"], found["worker_loss/b"]) == (2.0, 0, 4.0)
    assert "worker_loss/c" not in found


def test_steps_a_second_are_those_since_the_report_before_so_that_a_resumed_run_has_none_at_first() -> None:
    figures = RunFigures(plan(A))
    assert "steps_per_second" not in values(figures.of("a", progress(50, 1.0)))
    assert values(figures.of("a", progress(70, 5.0)))["steps_per_second"] == 5.0
    assert "steps_per_second" not in values(figures.of("a", progress(70, 5.0)))


def test_shares_of_a_workers_time_are_those_since_its_report_before() -> None:
    figures = RunFigures(plan(A, B))
    figures.of("server", progress(10, 1.0))
    first = figures.of("a", telemetry(TimeSpent(5, busy_s=6.0, exchange_s=2.0, data_s=1.0)))
    assert (values(first)["worker_exchange_share/a"], values(first)["worker_data_wait_share/a"]) == (0.25, 0.125)
    assert {each.step for each in first} == {10}
    spent = TimeSpent(9, busy_s=7.0, exchange_s=4.0, evaluation_s=1.0, data_s=1.0)
    second = values(figures.of("a", telemetry(spent)))
    assert (second["worker_exchange_share/a"], second["worker_data_wait_share/a"]) == (0.5, 0.0)
    figures.of("a", MemberLost("it ended"))
    third = values(figures.of("a", telemetry(TimeSpent(1, busy_s=1.0, exchange_s=3.0))))
    assert third["worker_exchange_share/a"] == 0.75


def watts(figures: RunFigures, told: MemberTelemetry) -> list[Figure]:
    return [each for each in figures.of("a", told) if each.name == "worker_power_watts"]


def test_watts_without_a_sensor_follow_from_the_plan_at_the_busy_share() -> None:
    (found,) = watts(RunFigures(plan(A)), telemetry(TimeSpent(5, busy_s=4.0, evaluation_s=1.0), watts=None))
    assert found.value == pytest.approx(10.0 + 0.5 * 40.0)  # A draws 10 W idle and 50 W busy
    assert found.source.startswith("nameplate")
    unknown = planned("a", idle_w=None, busy_w=None)
    assert watts(RunFigures(plan(unknown)), telemetry(TimeSpent(5, busy_s=4.0), watts=None)) == []


@pytest.mark.parametrize("run", ["dynamic-batches", "parameter-server", "peers"])
def test_figures_of_real_runs_have_a_meaning_each_and_end_with_the_run(run: str) -> None:
    figures = RunFigures(load(Plan, RUNS / run / "plan.json", ""))
    found = [each for event in read(RUNS / run / "events.jsonl") for each in figures.of(event.source, event.event)]
    names = {each.name for each in found}
    assert names <= MEANINGS.keys()
    assert names >= {"train_loss", "test_loss", "test_metric", "worker_exchange_share"}
    for name in ("steps_done", "checkpoint_step"):
        assert [each.value for each in found if each.name == name][-1] == 60
