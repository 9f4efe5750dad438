"""An audit makes only the runs that are missing: real ones, on local devices with numpy alone."""

import json
from pathlib import Path

import pytest

from backends import models
from planner.audit import runner
from planner.audit.folder import AuditFolder
from planner.audit.runner import make_missing_runs
from planner.audit.settings import Settings, audited_values
from planner.fleet.file import load_fleet
from planner.jobs.reference import find_job
from profilers.records.json_values import SCHEMA
from tests.installed import needs
from tests.planner import profiles
from tests.quick import NUMPY_ALONE, numpy_model
from tests.running import FASHION, call, fleet_file, until

SLOWDOWNS = {"tx2": 1.0, "tx1": 2.0}


def begun(folder: Path) -> AuditFolder:
    """An audit of two devices, begun with a profile that was made up."""
    model = numpy_model(folder)
    fleet_file(folder, {name: {"slowdown": factor, "environment": NUMPY_ALONE} for name, factor in SLOWDOWNS.items()})
    steps = profiles.step(model=model, fingerprint=models.fingerprint(model), accelerator="cpu", batch=4, build_s=0.1)
    times = {name: profiles.seconds(0.02 * slowdown) for name, slowdown in SLOWDOWNS.items()}
    devices = {
        name: profiles.device(steps._replace(gradient_s=times[name], slowdown=slowdown), slowdown=slowdown)
        for name, slowdown in SLOWDOWNS.items()
    }
    judged, audit = profiles.profile(devices), AuditFolder(folder / "audit")
    audited = audited_values(judged, (), None, None, None)
    audit.begin(
        Settings(
            SCHEMA, "audit", "fleet.toml", *audited, 1.0, 1, 0, "fastest", input_shape=(28, 28, 1), classes=10,
            data=str(FASHION),
        ),
        judged,
    )  # fmt: skip
    return audit


def make_runs(folder: Path, audit: AuditFolder) -> None:
    """Make what is missing.

    A busy machine may have no time for two reports of every worker in a run, which is then made
    again.
    """
    failures: list[dict[str, str]] = []

    def made() -> bool:
        failures.append(make_missing_runs(load_fleet(folder / "fleet.toml"), audit, lambda *_: None))
        return not failures[-1]

    until(made, lambda: str(failures[-1]))


JOB = """
import time
from types import SimpleNamespace

import torch

def forward(model, batch):
    time.sleep(0.02)
    return model(batch[0]), batch[1]

def tiny():
    data = [(torch.ones(1) * at, torch.ones(1)) for at in range(64)]
    model, loss = torch.nn.Linear(1, 1), torch.nn.functional.mse_loss
    return SimpleNamespace(model=model, train=data, test=data[:8], loss=loss, forward=forward)
"""


def of_job(folder: Path) -> AuditFolder:
    """An audit of a job on one device, begun with a profile that was made up."""
    fleet_file(folder, {"a": {}})
    (folder / "project").mkdir()  # apart from what devices keep
    (folder / "project/job.py").write_text(JOB)
    job = find_job("job.py:tiny", folder / "project")
    step = profiles.step(0.02, model=job.text, fingerprint=job.fingerprint, accelerator="cpu", batch=4, build_s=0.5)
    judged = profiles.profile({"a": profiles.device(step._replace(job=True, samples=64))})
    audit = AuditFolder(folder / "audit")
    audit.begin(
        Settings(SCHEMA, "audit", "fleet.toml", *audited_values(judged, (), None, None, None), 1.0, 1, 0, "fastest"),
        judged,
    )
    return audit


@needs("torch")
def test_a_job_is_audited_on_its_own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    audit = of_job(tmp_path)
    monkeypatch.chdir(tmp_path / "project")
    make_runs(tmp_path, audit)
    (run,) = audit.load().measured
    assert run.model == "job.py:tiny" and run.workers["a"].steps_per_s > 0


def test_a_job_that_has_changed_since_it_was_profiled_is_not_audited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = of_job(tmp_path)
    monkeypatch.chdir(tmp_path / "project")
    Path("job.py").write_text(f"{JOB}\n")
    failures = make_missing_runs(load_fleet(tmp_path / "fleet.toml"), audit, lambda *_: None)
    assert set(failures.values()) == {
        "job.py:tiny has changed since it was profiled; profile it again, and begin another audit"
    }


def test_a_model_file_that_has_changed_since_it_was_profiled_is_not_audited(tmp_path: Path) -> None:
    audit = begun(tmp_path)
    numpy_model(tmp_path, step_s=0.03)
    failures = make_missing_runs(load_fleet(tmp_path / "fleet.toml"), audit, lambda *_: None)
    assert set(failures.values()) == {
        f"{tmp_path}/tiny.py:tiny has changed since it was profiled; profile it again, and begin another audit"
    }


def test_an_audit_that_was_stopped_goes_on_and_is_judged_again_offline(tmp_path: Path) -> None:
    audit = begun(tmp_path)
    make_runs(tmp_path, audit)
    results = sorted(tmp_path.glob("audit/runs/*/*/*/result.json"))
    assert len(results) == 3 and audit.long_run.result.exists()
    assert not list(tmp_path.glob("audit/runs/*/*/*/checkpoint.npz"))
    results[0].unlink()
    kept = results[1].stat().st_mtime_ns
    make_runs(tmp_path, audit)
    assert results[0].exists() and results[1].stat().st_mtime_ns == kept

    options = ("--seconds", "5", "--data", str(FASHION))
    again = call(tmp_path, "audit", *options, "--json", "--plot", "plot.png")
    assert again.status == 0, again.errors
    assert (tmp_path / "plot.png").stat().st_size > 1000
    assert results[1].stat().st_mtime_ns == kept
    offline = call(tmp_path, "audit", "audit", "--json")
    assert json.loads(offline.output) == json.loads(again.output)

    refused = call(tmp_path, "audit", *options, "--seed", "1")
    assert refused.status == 1 and "has seed 0, not 1" in refused.errors


@pytest.mark.parametrize(("disturbance", "times"), [(0.5, 2), (0.1, 1)])
def test_a_disturbed_run_is_made_again_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, disturbance: float, times: int
) -> None:
    audit, made, told = begun(tmp_path), [], []
    monkeypatch.setattr(runner, "_make", lambda run, folder, *_: made.append(str(folder.path)))
    monkeypatch.setattr(runner, "_disturbance", lambda folder, judged_by: disturbance if judged_by else 0.0)
    failures = make_missing_runs(load_fleet(tmp_path / "fleet.toml"), audit, lambda name, *_: told.append(name))
    assert not failures
    assert sorted(made.count(each) for each in set(made)) == [1, times, times, times]  # the long run is not judged
    assert sum("the machine was disturbed" in each for each in told) == 3 * (times - 1)
