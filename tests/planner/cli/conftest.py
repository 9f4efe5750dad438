"""Commands are run in an empty folder, or in one with a profile."""

import sys
from pathlib import Path

import pytest

from planner import json_records
from planner.cli import main
from tests.planner.cli.commands import Planner, Ran, fleet


@pytest.fixture
def planner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Planner:
    """Runs a command in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*args: str) -> Ran:
        monkeypatch.setattr(sys, "argv", ["planner", *args])
        with pytest.raises(SystemExit) as ended:
            main.main()
        assert isinstance(ended.value.code, int)
        return Ran(ended.value.code, *capsys.readouterr())

    return run


@pytest.fixture
def profiled(planner: Planner) -> Planner:
    json_records.save(fleet(), Path("profile.json"))
    return planner
