"""The result of a run is kept before anything is told of it, and no report that fails costs it."""

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from backends.protocol.events import Evaluated, MemberProgress, RunAccount
from planner.errors import RecordError, RunError
from planner.paths import RunFolder
from planner.train import train
from planner.train.data_division import data_division
from planner.train.orders import Options
from planner.train.telemetry import MemberReports
from tests.planner.plans import plan, planned

DONE = RunAccount(
    100, 100, 90.0, {"a": MemberProgress(100, 0.5, 0, 0.0, False)}, True,
    evaluations=(Evaluated(100, "a", 0.5, {"mae": 0.1}, 1.0),),
)  # fmt: skip


def ended_run(folder: Path, target: str | None = None, problems: tuple[str, ...] = ()) -> Any:
    """A run of one device that has ended as it should."""
    planned_run, options = plan(planned("a")), Options(target=target)
    return SimpleNamespace(
        plan=planned_run, folder=RunFolder(folder), options=options, problems=list(problems), startup_s=None,
        division=data_division(planned_run, options), reports={"a": MemberReports()},
        data=SimpleNamespace(samples=None, classes=None, sample_bytes=1), run=lambda resume, lasting_s: DONE,
    )  # fmt: skip


def kept(folder: Path) -> Any:
    return json.loads((folder / "result.json").read_text())


def test_a_report_that_fails_is_told_and_the_result_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        assert kept(tmp_path)["measured"]["wall_s"] == 90.0  # it was written before
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(train, "end_of", fail)
    result = train.carry_out(ended_run(tmp_path))
    assert result["problems"] == ["its report is not complete: ZeroDivisionError: division by zero"]
    assert kept(tmp_path) == result


def test_figures_that_cannot_be_worked_out_leave_the_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OverflowError("math range error")

    monkeypatch.setattr(train, "worker_results", fail)
    with pytest.raises(RunError, match="the run is complete, but its figures could not be .*: OverflowError: math"):
        train.carry_out(ended_run(tmp_path, problems=("its weights could not be saved",)))
    assert kept(tmp_path)["account"]["done"] == 100
    assert kept(tmp_path)["problems"][0] == "its weights could not be saved"


def test_numbers_that_json_does_not_have_become_null_and_cost_nothing(tmp_path: Path) -> None:
    run = ended_run(tmp_path)
    run.reports["a"].compressor = {"ratio": math.nan, "layers": [math.inf, 1.0]}
    result = train.carry_out(run)
    assert result["problems"] == []
    assert kept(tmp_path) == result
    assert result["workers"]["a"]["sender"] == {"ratio": None, "layers": [None, 1.0]}


def test_a_metric_that_was_never_finite_is_told_and_costs_nothing(tmp_path: Path) -> None:
    result = train.carry_out(ended_run(tmp_path, "f1=0.9"))
    assert result["problems"] == []
    assert "--target f1=0.9: in no evaluation was f1 a number" in result["notes"]
    assert kept(tmp_path)["target"] == {"metric": "f1", "value": 0.9, "reached": False, "step": None}


def test_on_a_full_disk_the_result_is_returned_and_the_problem_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = train.save

    def full(record: object, path: Path) -> None:
        if path.name == "result.json":
            raise RecordError("cannot write result.json: No space left on device")
        save(record, path)

    monkeypatch.setattr(train, "save", full)
    result = train.carry_out(ended_run(tmp_path, problems=("the trained weights could not be saved",)))
    assert result["measured"]["wall_s"] == 90.0
    assert result["problems"] == [
        "the trained weights could not be saved", "cannot write result.json: No space left on device"
    ]  # fmt: skip
