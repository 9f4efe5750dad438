"""Commands are run in an empty folder, or in one with a profile."""

import functools
from pathlib import Path

import pytest

from planner import json_records
from tests.planner.cli.commands import Planner, fleet
from tests.running import call


@pytest.fixture
def planner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Planner:
    """Runs a command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return functools.partial(call, tmp_path)


@pytest.fixture
def profiled(planner: Planner) -> Planner:
    json_records.save(fleet(), Path("profile.json"))
    return planner
