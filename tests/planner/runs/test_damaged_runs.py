"""Run folders with damaged files are listed and compared all the same."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.paths import RunFolder
from planner.runs.comparison import compare
from planner.runs.summary import SILENT_S, summary
from planner.views import runs as view
from tests.mutations import MUTATIONS, damaged, mutated, written
from tests.planner.runs.test_summary import GOLDEN

#: What is damaged; the log counts only where there is no result.
FILES = ("result.json", "options.json", "plan.json", "events.jsonl")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(GOLDEN / "peers", tmp_path_factory.mktemp("runs") / "2026-01-31T12-00-05-tiny"))


@st.composite
def broken(draw: st.DrawFn, text: bytes) -> bytes:
    """The content of a file: damaged bytes, or lines of JSON of which one is changed."""
    if draw(st.booleans()):
        return draw(damaged(text))
    lines: list[Any] = list(map(json.loads, [text] if text.startswith(b"{\n") else text.splitlines()))
    number = draw(st.integers(0, len(lines) - 1))
    lines[number] = draw(mutated(lines[number]))
    return "\n".join(written(each) for each in lines).encode()


@MUTATIONS
@given(st.data())
def test_no_damage_ends_the_listing(folder: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(FILES))
    for each in FILES:
        shutil.copy(GOLDEN / "peers" / each, folder)
    if name == "events.jsonl":
        (folder / "result.json").unlink()
    (folder / name).write_bytes(data.draw(broken((folder / name).read_bytes())))
    run = RunFolder(folder)
    found = summary(run, os.stat(run.events).st_mtime + 2 * SILENT_S)
    whole = summary(RunFolder(GOLDEN / "peers"), 0.0)
    view.render([found, whole])
    json.dumps(view.to_json([found, whole]), allow_nan=False)
    for pair in ([found, whole], [whole, found]):
        compared = compare(pair)
        view.render_comparison(compared)
        json.dumps(view.comparison_to_json(compared), allow_nan=False)
