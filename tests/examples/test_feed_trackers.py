"""examples/feed_trackers.py feeds trackers; modules with the same calls stand in for them here."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from backends.protocol.events import Evaluated, MemberProgress, Progress, RunAccount
from planner.train.event_log import EventLog
from planner.train.events import RunEnded, Started

SCRIPT = Path(__file__).parents[2] / "examples" / "feed_trackers.py"
EVALUATED = Evaluated(20, "tx2", 0.5, {"accuracy": 0.75}, 0.1)
PROGRESS = Progress(
    10, 20, 1.5, {"tx2": MemberProgress(10, 2.0, 64, 0.5, True), "tx1": MemberProgress(0, None, 0, None, False)}
)
ENDED = RunEnded(RunAccount(20, 20, 3.0, {}, True))
PLOTTED = [["10", {"elapsed_s": 1.5, "loss/tx2": 2.0}], ["20", {"test/loss": 0.5, "test/accuracy": 0.75}]]

SPY = """
import json
seen = []
def {begin}(**options): assert options[{key!r}] == "run"
def {plot}(found, step): seen.append([str(step), found])
def {end}(): print(json.dumps(seen))
"""
MODULES = {
    "wandb": SPY.format(begin="init", key="name", plot="log", end="finish"),
    "mlflow": SPY.format(begin="start_run", key="run_name", plot="log_metrics", end="end_run"),
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    log = EventLog(folder / "events.jsonl")
    for event in (Started(), PROGRESS, EVALUATED):
        log.add("parameter server", event)
    log.close()
    return folder


def started(folder: Path, *arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, str(SCRIPT), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("name", MODULES)
def test_evaluations_and_progress_are_plotted(name: str, run: Path, tmp_path: Path) -> None:
    (tmp_path / f"{name}.py").write_text(MODULES[name])
    output, errors = started(tmp_path, str(run), "--to", name).communicate()
    assert not errors
    assert json.loads(output) == PLOTTED


def test_a_run_is_followed_until_it_has_ended(run: Path, tmp_path: Path) -> None:
    (tmp_path / "wandb.py").write_text(MODULES["wandb"])
    following = started(tmp_path, str(run), "--to", "wandb", "--follow")
    log = EventLog(run / "events.jsonl")
    log.add("parameter server", EVALUATED._replace(step=30))
    log.add("planner", ENDED)
    log.close()
    output, errors = following.communicate()
    assert not errors
    assert [step for step, _ in json.loads(output)] == ["10", "20", "30"]
