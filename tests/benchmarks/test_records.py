"""Finished runs on disk."""

from pathlib import Path

import pytest

from benchmarks.racing.records import Point, append, read
from planner.errors import RecordError

from .made import TRAFFIC, failed, outcome, run


def test_runs_are_read_as_they_were_written_in_their_order(tmp_path: Path) -> None:
    whole = outcome(
        curve=(Point(1.5, 10, 0.4, "a"),), traffic=TRAFFIC, card_bytes=7, energy_j=3.5, accuracies={"a": 0.5, "b": 0.7}
    )
    runs = [run("fast"), failed("slow"), run("slow", 1)._replace(outcome=whole)]
    for each in runs:
        append(tmp_path / "results.jsonl", each)
    assert read(tmp_path / "results.jsonl") == runs


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    append(path, run("fast"))
    with path.open("a") as file:
        file.write('{"setting": {"race"\n')
    with pytest.raises(RecordError, match=r"results\.jsonl, line 2: .*; remove that line"):
        read(path)
