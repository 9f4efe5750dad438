"""Every run folder is listed, whatever is left of it."""

import json
import os
import shutil
from pathlib import Path

import pytest

from backends.protocol.events import Evaluated, MemberProgress, Progress, RunAccount
from planner.paths import RunFolder
from planner.runs.summary import (
    DAMAGED,
    FINISHED,
    INTERRUPTED,
    RUNNING,
    SILENT_S,
    RunSummary,
    find_runs,
    summary,
)
from planner.train.event_log import EventReporter
from planner.train.events import MemberGivenUp, Reaching, RunEnded, Started, Stopping
from tests.running import ROOT

GOLDEN = ROOT / "tests" / "golden" / "runs"
WORKERS = {"desktop": MemberProgress(7, 2.0, 100, 0.0, True)}
SCORE = Evaluated(5, "desktop", 1.5, {"accuracy": 0.5}, 0.1)
NAME = "2026-01-31T12-00-05-tiny"


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """A finished run, in a folder named after its time."""
    return RunFolder(Path(shutil.copytree(GOLDEN / "peers", tmp_path / NAME)))


def logged(run: RunFolder, *events: object) -> None:
    """The run has no result, and these events in its log."""
    run.result.unlink(missing_ok=True)
    run.events.unlink(missing_ok=True)
    reporter = EventReporter(run.events, lambda source, event: None)
    for event in events:
        reporter.report("planner", event)
    reporter.close()


def seen(run: RunFolder, after_s: float = 2 * SILENT_S) -> RunSummary:
    """The summary so many seconds after the last event."""
    return summary(run, os.stat(run.events).st_mtime + after_s)


def test_a_finished_run_has_what_was_predicted_and_measured(run: RunFolder) -> None:
    found, result = seen(run), json.loads(run.result.read_text())
    assert (found.state, found.reason, found.date) == (FINISHED, "", "2026-01-31T12:00:05")
    assert (found.planned.model, found.planned.server) == ("examples/tiny.py:tiny", "desktop")
    assert found.planned.workers == found.stand_ins == ("desktop", "tx2", "tx1")
    assert (found.planned.steps, found.steps_made) == (60, 60)
    assert found.predicted._asdict() == {name: result["predicted"][name] for name in found.predicted._fields}
    assert found.measured.energy_j == result["measured"]["energy_j"]
    assert found.evaluation is not None
    assert (found.evaluation.step, found.evaluation.metrics) == (60, {"accuracy": 0.191})
    assert found.target is None
    assert (found.settings["batch"], found.settings["warmup"]) == (16, 5)


@pytest.mark.parametrize(
    ("events", "reason", "steps"),
    [
        ((Reaching(("desktop",)),), "it ended before its first step", 0),
        ((Started(), Progress(7, 60, 1.0, WORKERS)), "its log ends in the middle of the run", 7),
        ((Started(), Stopping(), RunEnded(RunAccount(7, 60, 1.0, WORKERS, False, "stopped"))), "stopped", 7),
        ((Started(), MemberGivenUp("out of memory")), "out of memory", 0),
    ],
)
def test_a_run_without_a_result_was_interrupted(
    run: RunFolder, events: tuple[object, ...], reason: str, steps: int
) -> None:
    logged(run, *events)
    found = seen(run)
    assert (found.state, found.reason, found.steps_made) == (INTERRUPTED, reason, steps)
    assert found.measured.time_s is None


def test_a_run_whose_log_still_grows_is_under_way(run: RunFolder) -> None:
    logged(run, Started(), Progress(7, 60, 1.0, WORKERS), SCORE)
    assert seen(run, SILENT_S - 1).state == RUNNING
    found = seen(run, SILENT_S + 1)
    assert (found.state, found.evaluation) == (INTERRUPTED, SCORE)


def test_a_line_that_was_cut_off_by_the_end_of_the_program_is_no_damage(run: RunFolder) -> None:
    logged(run, Started(), Progress(7, 60, 1.0, WORKERS))
    with run.events.open("a") as log:
        log.write('{"t_s": 1.0, "fr')
    assert (seen(run).state, seen(run).steps_made) == (INTERRUPTED, 7)


def test_what_is_damaged_is_named_and_the_rest_is_shown(run: RunFolder) -> None:
    run.plan.write_text("{")
    found = seen(run)
    assert (found.state, found.planned.model, found.steps_made) == (DAMAGED, None, 60)
    assert found.reason.startswith(f"{run.plan}, line 1: not JSON")


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"evaluations": 3, "workers": {}}', "\x00", '{"workers": {"a": 1}}']
)
def test_no_result_is_so_wrong_that_it_ends_the_listing(run: RunFolder, content: str) -> None:
    run.result.write_text(content)
    found = seen(run)
    assert (found.state, found.planned.model) == (DAMAGED, "examples/tiny.py:tiny")
    assert str(run.path) in found.reason


def test_a_damaged_line_of_the_log_is_numbered(run: RunFolder) -> None:
    logged(run, Started(), Progress(7, 60, 1.0, WORKERS))
    run.events.write_text(run.events.read_text() + "nonsense\n" + run.events.read_text())
    found = seen(run)
    assert (found.state, found.steps_made) == (DAMAGED, 7)
    assert found.reason.startswith(f"{run.events}, line 3: ")


def test_runs_are_found_at_any_depth_and_the_oldest_is_first(tmp_path: Path) -> None:
    for name in ("audit/runs/2026-03-01T00-00-00-b", "2026-04-01T00-00-00-c", ".trash/2026-01-01T00-00-00-x"):
        (tmp_path / name).mkdir(parents=True)
    shutil.copytree(GOLDEN / "peers", tmp_path / "deep" / "2026-02-01T00-00-00-a")
    (tmp_path / "plan.json").write_text("{}")
    assert [run.path.name[-1] for run in find_runs(tmp_path)] == ["a", "b", "c"]
    assert [run.path.name for run in find_runs(GOLDEN / "peers")] == ["peers"]
    (empty,) = (summary(run, 0.0) for run in find_runs(tmp_path / "audit"))
    assert (empty.state, empty.name) == (DAMAGED, "2026-03-01T00-00-00-b")
