"""Trackers are checked before a device is used, and open in places named after the run."""

from pathlib import Path

import pytest

from planner.errors import TrackerError
from planner.paths import RunFolder
from planner.train.trackers import request
from planner.train.trackers.request import TrackerRequest
from tests.planner.plans import plan, planned

PLAN = plan(planned("a"))


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        (
            TrackerRequest(tensorboard=Path("logs")),
            "--tensorboard logs: tensorboardX, which writes it, is not installed on this machine; "
            "remedy: pip install 'edge-cluster-planner[tensorboard]'",
        ),
        (
            TrackerRequest(metrics_file=Path("a.prom")),
            "--metrics-file a.prom: prometheus_client, which writes it, is not installed on this machine; "
            "remedy: pip install 'edge-cluster-planner[metrics]'",
        ),
    ],
)
def test_a_missing_package_is_named_with_the_extra_that_brings_it(
    asked: TrackerRequest, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request, "find_spec", lambda package: None)
    with pytest.raises(TrackerError) as refused:
        asked.check()
    assert str(refused.value) == problem


@pytest.mark.parametrize(
    ("file", "problem"),
    [
        ("run.txt", "node-exporter reads .prom files only"),
        ("none/run.prom", "the folder none does not exist"),
    ],
)
def test_a_file_that_nobody_would_read_is_refused(file: str, problem: str) -> None:
    with pytest.raises(TrackerError, match=f"--metrics-file {file}: {problem}"):
        TrackerRequest(metrics_file=Path(file)).check()


def test_runs_lie_beside_each_other_in_a_folder_of_tensorboard(tmp_path: Path) -> None:
    asked = TrackerRequest(tmp_path / "logs", tmp_path / "run.prom")
    asked.check()
    for observer in asked.open(PLAN, RunFolder(tmp_path / "runs" / "first")):
        observer.close()
    (file,) = (tmp_path / "logs" / "first").iterdir()
    assert file.name.startswith("events.out.tfevents.")
    assert 'planner_run_active{run="first"} 0.0' in (tmp_path / "run.prom").read_text()


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TrackerError, match=f"cannot write {tmp_path}/file/run: Not a directory; name another place"):
        TrackerRequest(tensorboard=tmp_path / "file").open(PLAN, RunFolder(tmp_path / "run"))
