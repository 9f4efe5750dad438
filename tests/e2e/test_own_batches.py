"""A batch for each device in scripts of PyTorch, Accelerate, Transformers and Lightning."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from planner.json_records import save
from planner.launch.launch import BATCHES_FILE
from planner.plan.file import load_plan
from tests.running import ROOT, fleet_file, gone, plan_file, run

SCRIPTS = ROOT / "tests/e2e/scripts"
PLANNED = {"tx2": 5, "nano": 3}
OFFLINE = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two devices, a plan with unlike batches for them, and a project with the scripts."""
    fleet_file(tmp_path, {name: {"python": sys.executable, "environment": OFFLINE} for name in PLANNED})
    plan = load_plan(plan_file(tmp_path / "plan.json", "cipher", PLANNED, 10, fingerprint="none"))
    workers = tuple(each._replace(batch=PLANNED[each.name]) for each in plan.workers)
    save(plan._replace(workers=workers), tmp_path / "plan.json")
    shutil.copytree(SCRIPTS, tmp_path / "project")
    return tmp_path


def alone(folder: Path, *script: str) -> Any:
    """What one process without a plan says, with the file beside it."""
    shutil.copy(BATCHES_FILE, folder / "project")
    place = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "PLANNER_BATCH_SIZES")
    environment = {name: value for name, value in os.environ.items() if name not in place}
    project = folder / "project"
    said = subprocess.check_output([sys.executable, *script], cwd=project, env={**environment, **OFFLINE})
    return json.loads(said.splitlines()[-1])


@pytest.mark.parametrize("script", ["ddp.py", "accelerated.py", "trainer.py", "lit.py", "lit.py labels"])
def test_unlike_batches_train_as_one_process_with_all_of_them(folder: Path, script: str) -> None:
    command = run(folder, "launch", "plan.json", "--project", "project", "--", "python", *script.split())
    assert command.popen.returncode == 0, command.errors
    gone(folder)
    said = [line.partition("] ")[2] for line in command.output.splitlines()]
    ranks = [json.loads(line) for line in said if line.startswith('{"weights"')]
    expected = alone(folder, *script.split())
    assert len(ranks) == 2
    for rank in ranks:
        assert (rank["steps"], rank["correct"]) == (expected["steps"], pytest.approx(expected["correct"]))
        assert rank["weights"] == pytest.approx(expected["weights"], abs=1e-5)
