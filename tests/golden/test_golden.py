"""Every later tree reads and ranks the same what was recorded with the tree of 23 November 2026."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from backends.frameworks.base import MOMENTUM
from backends.training import checkpoint
from planner.cli.main import app
from planner.json_records import load
from planner.plan.file import Plan, load_plan
from planner.train.orders import Options
from tests.golden import record

RUNS = ("parameter-server", "peers", "dynamic-batches")
ANSWERS: dict[str, Any] = json.loads(gzip.decompress(record.RECORDED.read_bytes()))


def assert_same(found: Any, recorded: Any, where: str, may_grow: bool = False) -> None:
    """Equal but for the last digits of numbers, which differ between processors.

    may_grow: whether objects may have keys that they did not have when they were recorded.
    """
    if isinstance(recorded, dict):
        assert [name for name in found if name in recorded or not may_grow] == list(recorded), where
        for name, value in recorded.items():
            assert_same(found[name], value, f"{where}.{name}", may_grow)
    elif isinstance(recorded, list):
        assert len(found) == len(recorded), where
        for index, value in enumerate(recorded):
            assert_same(found[index], value, f"{where}[{index}]", may_grow)
    elif isinstance(recorded, float):
        assert found == pytest.approx(recorded, rel=1e-9), where
    else:
        assert found == recorded, where


@pytest.mark.parametrize("question", list(record.questions()), ids=lambda asked: record.key(*asked))
def test_a_recorded_profile_is_ranked_as_it_was(question: tuple[str, str, str, str], tmp_path: Path) -> None:
    name = record.key(*question)
    answer = record.answer(app, *question, tmp_path)
    assert_same(answer["recommend"], ANSWERS[name]["recommend"], name)
    assert_same(answer["plan"], ANSWERS[name]["plan"], name, may_grow=True)


@pytest.mark.parametrize("run", RUNS)
def test_a_recorded_run_folder_is_read(run: str) -> None:
    folder = record.HERE / "runs" / run
    plan, options = load_plan(folder / "plan.json"), load(Options, folder / "options.json")
    saved, layout = checkpoint.read(str(folder / "checkpoint.npz"))
    result = json.loads((folder / "result.json").read_text())
    assert isinstance(plan, Plan)
    assert plan.names == ("desktop", "tx2", "tx1")
    assert options.data is not None
    assert saved.meta["step"] == result["steps"] == 60
    assert layout.parameters == saved.weights.size == saved.slots[MOMENTUM].size == 12_483
