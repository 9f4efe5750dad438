"""An audit makes only the runs that are missing: real ones, on local devices with numpy alone."""

import json
from pathlib import Path

from backends import models
from planner.audit.folder import AuditFolder
from planner.audit.runner import make_missing_runs
from planner.audit.settings import Settings, audited_values
from planner.fleet.file import load_fleet
from profilers.records import SCHEMA
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
        Settings(SCHEMA, "audit", "fleet.toml", *audited, 1.0, 1, 0, "fastest", input_shape=(28, 28, 1), classes=10),
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
