"""Clusters train for a few seconds on local devices with numpy alone; one that fails is told."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from backends import models
from planner import json_records
from planner.audit.runs import Audit, outcomes, steady_batches
from planner.errors import AuditError
from planner.fleet.device import Interpreter
from planner.fleet.file import load_fleet
from planner.plan.recommend import recommend
from planner.plan.texts import parse_strategy
from planner.predict.seen_errors import seen_errors
from planner.profile.file import load_profile
from tests.planner import profiles
from tests.planner.requests import asked
from tests.quick import NUMPY_ALONE, numpy_model
from tests.running import FASHION, call, fleet_file

SLOWDOWNS = {"tx2": 1.0, "tx1": 2.0}
STEP_S = 0.02


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two local devices, and a profile of them that was made up."""
    model = numpy_model(tmp_path, STEP_S)
    fleet_file(tmp_path, {name: {"slowdown": each, "environment": NUMPY_ALONE} for name, each in SLOWDOWNS.items()})
    step = profiles.step(model=model, fingerprint=models.fingerprint(model), accelerator="cpu", batch=4, build_s=0.1)
    devices = {
        name: profiles.device(
            profiles.changed(step, gradient_s=profiles.seconds(STEP_S * each), slowdown=each), slowdown=each
        )
        for name, each in SLOWDOWNS.items()
    }
    json_records.save(profiles.profile(devices), tmp_path / "profile.json")
    return tmp_path


def test_clusters_are_measured_and_their_errors_kept(folder: Path) -> None:
    called = call(folder, "audit", "--clusters", "2", "--seconds", "1", "--data", str(FASHION), "--json")
    assert called.code == 0, called.err
    told = json.loads(called.out)
    assert [each["place"] for each in told["clusters"]] == [1, 2]
    for each in told["clusters"]:  # how long they take is this machine's affair, but for what they sleep
        assert each["measured_s"] > STEP_S / 4 and each["measured_w"] is None
    assert told["hit"] == (told["regret"] == 0.0)
    seen = seen_errors(folder).errors
    assert sorted(error for errors in seen.values() for error in errors) == sorted(
        each["error"] for each in told["clusters"]
    )


def test_a_run_that_fails_is_told_and_the_others_go_on(folder: Path) -> None:
    ranked = recommend(load_profile(folder / "profile.json"), asked({"time": 1.0}))
    fleet = load_fleet(folder / "fleet.toml")
    there, gone = fleet.device("tx2"), replace(fleet.device("tx1"), interpreter=Interpreter("/nowhere/python"))
    found = list(outcomes(Audit(ranked, replace(fleet, devices=(there, gone)), len(ranked), 1.0, FASHION)))
    assert all(each.failure for each in found if "tx1" in each.workers)
    assert [each.failure for each in found if each.workers == ("tx2",)] == [""]


def test_a_model_that_has_changed_since_it_was_profiled_is_not_audited(folder: Path) -> None:
    ranked = recommend(load_profile(folder / "profile.json"), asked({"time": 1.0}))
    (folder / "tiny.py").write_text((folder / "tiny.py").read_text() + "\n")
    with pytest.raises(AuditError, match="has changed since it was profiled; profile it again"):
        next(outcomes(Audit(ranked, load_fleet(folder / "fleet.toml"), 1, 1.0, FASHION)))


def test_batches_that_would_grow_stay_as_they_begin() -> None:
    assert steady_batches(parse_strategy("dlion")).batching != "dynamic"
    assert steady_batches(parse_strategy("allreduce")).text == parse_strategy("allreduce").text
