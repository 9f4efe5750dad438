"""`planner runs` as the operator meets it."""

import json
import shutil
from pathlib import Path

import pytest

from tests.planner.cli.commands import Planner
from tests.planner.screens import row
from tests.running import ROOT

NAMES = ("dynamic-batches", "parameter-server", "peers")


@pytest.fixture
def with_runs(planner: Planner) -> Planner:
    """Runs planner where three runs lie in runs/."""
    shutil.copytree(ROOT / "tests" / "golden" / "runs", "runs")
    return planner


def test_runs_of_an_earlier_version_are_listed(with_runs: Planner) -> None:
    ran = with_runs("runs")
    assert (ran.code, ran.err) == (0, "")
    for name in NAMES:
        line = row(ran.out, name)
        assert "examples/tiny.py:tiny" in line
        assert line.endswith("finished")
    assert "tx2*" in ran.out


def test_the_same_as_json(with_runs: Planner) -> None:
    runs = json.loads(with_runs("runs", "--json").out)["runs"]
    assert [run["name"] for run in runs] == sorted(NAMES)
    assert {run["state"] for run in runs} == {"finished"}
    assert runs[0]["measured"]["time_s"] > 0


def test_a_damaged_run_is_told_and_hides_no_other(with_runs: Planner) -> None:
    Path("runs/peers/result.json").write_text("{")
    ran = with_runs("runs")
    assert ran.code == 0
    assert row(ran.out, "peers").endswith("damaged")
    assert "runs/peers: damaged: runs/peers/result.json, line 1: not JSON" in ran.out
    assert row(ran.out, "parameter-server").endswith("finished")


def test_runs_are_put_side_by_side_in_the_order_named(with_runs: Planner) -> None:
    ran = with_runs("runs", "--compare", "runs/peers", "runs/parameter-server")
    assert row(ran.out, "server").split() == ["server", "desktop", "tx2"]
    assert row(ran.out, "strategy").split() == ["strategy", "baseline", "parameter-server"]
    assert "(-37.8 %)" in row(ran.out, "time")
    assert "batch" not in ran.out
    compared = json.loads(with_runs("runs", "-c", "--json", "runs/peers", "runs/parameter-server").out)
    assert compared["settings"]["server"] == ["desktop", "tx2"]
    assert compared["results"]["time_s"]["differences"] == pytest.approx([0.0, -0.378], abs=1e-3)


def test_where_there_are_no_runs_the_remedy_is_named(planner: Planner) -> None:
    assert planner("runs").problem().startswith("runs: there is no such folder; name a run folder")


def test_a_single_run_is_counted_as_one(with_runs: Planner) -> None:
    assert with_runs("runs", "runs/peers").out.startswith("1 run\n")
