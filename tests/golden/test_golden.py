"""Run folders that were recorded are read."""

import json
from pathlib import Path

import pytest

from backends.frameworks.base import MOMENTUM
from backends.training import checkpoint
from planner.json_records import load
from planner.plan.file import Plan, load_plan
from planner.train.orders import Options

RUNS = ("parameter-server", "peers", "dynamic-batches")


@pytest.mark.parametrize("run", RUNS)
def test_a_recorded_run_folder_is_read(run: str) -> None:
    folder = Path(__file__).parent / "runs" / run
    plan, options = load_plan(folder / "plan.json"), load(Options, folder / "options.json")
    saved, layout = checkpoint.read(str(folder / "checkpoint.npz"))
    result = json.loads((folder / "result.json").read_text())
    assert isinstance(plan, Plan)
    assert plan.names == ("desktop", "tx2", "tx1")
    assert options.data is not None
    assert saved.meta["step"] == result["steps"] == 60
    assert layout.parameters == saved.weights.size == saved.slots[MOMENTUM].size == 12_483
