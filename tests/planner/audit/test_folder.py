from pathlib import Path

import pytest

from planner.audit.folder import AuditFolder
from planner.audit.planned_runs import planned_runs
from planner.audit.settings import Settings, audited_values
from planner.errors import AuditError, RecordError
from planner.predict.clusters import ClusterConfig
from profilers.records.json_values import SCHEMA
from tests.planner.profiles import device, profile, step

THREE = profile({"a": device(step(0.1)), "b": device(step(0.2)), "c": device(step(0.4))})


def requested(seed: int = 0) -> Settings:
    audited = audited_values(THREE, (), None, None, 1000)
    return Settings(SCHEMA, "lab", "fleet.toml", *audited, 10.0, 2, seed, "every")


def test_no_two_runs_share_a_folder(tmp_path: Path) -> None:
    folder = AuditFolder(tmp_path)
    paths = {folder.run(job.model, job.config, job.repetition).path for job in planned_runs(requested(), THREE)}
    assert len(paths) == 24


def test_neither_do_two_models_of_one_file(tmp_path: Path) -> None:
    config = ClusterConfig("a", ("a",), 32)
    paths = {AuditFolder(tmp_path).run(model, config, 0).path for model in ("net.py:small", "net.py:large", "net")}
    assert len(paths) == 3


def test_an_audit_keeps_its_profile_and_its_settings(tmp_path: Path) -> None:
    folder = AuditFolder(tmp_path / "new")
    assert not folder.begun
    folder.begin(requested(), THREE)
    assert folder.begun and folder.profile() == THREE and folder.settings() == requested()
    with pytest.raises(AuditError, match="seed 0, not 1"):
        folder.begin(requested(seed=1), THREE)


def test_what_was_not_run_yet_is_missing(tmp_path: Path) -> None:
    folder = AuditFolder(tmp_path)
    folder.begin(requested(seed=7), THREE)
    assert folder.load().seed == 7
    assert folder.load().missing == (("net", 0),) * 12 + (("net", 1),) * 12


def test_another_folder_is_no_audit(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"audit.json.*name the folder of an audit"):
        AuditFolder(tmp_path).load()
