"""Runs divide their data by label: what each device holds is told, and kept when resumed."""

import json
from pathlib import Path

import pytest

from tests.planner.pairs import new_pair, new_plan, run_folders, training
from tests.running import run


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    return new_pair(tmp_path)


def held(folder: Path) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = json.loads((folder / "partition.json").read_text())["labels"]
    return found


@pytest.mark.e2e
def test_devices_hold_labels_of_their_own_also_when_the_run_goes_on_with_one_of_them(pair: Path) -> None:
    command = run(pair, *training("--partition", "labels=4", "--verbose"))
    assert command.popen.returncode == 0, command.errors
    (first,) = run_folders(pair)
    labels = held(first)
    assert [len(of) for of in labels.values()] == [4, 4] and not labels["desktop"].keys() & labels["tx2"].keys()
    assert "data by --partition labels=4" in command.output
    assert "600 of 3,000 samples are on no device of this run (--partition labels=4)" in command.output
    assert json.loads((first / "result.json").read_text())["partition"]["labels"] == labels
    events = [json.loads(line) for line in (first / "events.jsonl").read_text().splitlines()]
    assert {event["from"]: event["labels"] for event in events if event["type"] == "ready"} == labels

    alone = new_plan(pair, "tx2", steps=220)
    command = run(pair, *training(str(alone), "--resume", str(first)))
    assert command.popen.returncode == 0, command.errors
    assert held(run_folders(pair)[-1]) == {"tx2": labels["tx2"]}
