"""plan.json is written, read again, and read where an older planner wrote it."""

import json
from pathlib import Path

import pytest

from planner import json_records
from planner.errors import RecordError
from planner.plan.file import Plan, load_plan
from planner.plan.recommend import make_plan, recommend
from planner.plan.request import RecommendRequest
from planner.profile.file import Profile
from planner.provenance import Provenance
from tests.planner import profiles
from tests.planner.plans import NAMEPLATE

EDP = RecommendRequest({"edp": 1.0})


def fleet() -> Profile:
    devices = {name: profiles.device(profiles.step(each, spread=0.02)) for name, each in (("a", 0.5), ("b", 0.6))}
    return profiles.profile(devices)


def test_a_plan_survives_its_file(tmp_path: Path) -> None:
    plan = make_plan(recommend(fleet(), EDP._replace(steps=500)), "fleet.toml")
    json_records.save(plan, tmp_path / "plan.json")
    assert load_plan(tmp_path / "plan.json") == plan
    assert sum(worker.steps for worker in plan.workers) == pytest.approx(500)
    assert plan.server in {worker.name for worker in plan.workers}
    assert plan.interval[0] <= plan.prediction.edp_js <= plan.interval[1]
    assert {worker.power_source for worker in plan.workers} == {NAMEPLATE}


def test_a_plan_of_unknown_watts_can_be_written(tmp_path: Path) -> None:
    unknown = profiles.profile({name: profiles.device(idle_w=None) for name in "ab"})
    plan = make_plan(recommend(unknown, RecommendRequest()), "fleet.toml")
    json_records.save(plan, tmp_path / "plan.json")
    loaded: Plan = load_plan(tmp_path / "plan.json")
    assert loaded.prediction.power_w is None
    assert loaded.workers[0].power_w is None


def test_a_broken_plan_names_the_command_that_mends_it(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text('{"schema": 1}')
    with pytest.raises(RecordError, match="missing 'fleet'.*run `planner recommend`"):
        load_plan(tmp_path / "plan.json")


def test_a_plan_of_an_older_planner_is_read(tmp_path: Path) -> None:
    plan = make_plan(recommend(fleet(), EDP), "fleet.toml")
    json_records.save(plan, tmp_path / "plan.json")
    written = json.loads((tmp_path / "plan.json").read_text())
    for worker in written["workers"]:
        worker["power_source"] = "fleet file: idle and maximum"
        del worker["framework"], worker["computing_s"]
    del written["energy_uncertainty"], written["time_uncertainty"]
    (tmp_path / "plan.json").write_text(json.dumps(written))
    loaded = load_plan(tmp_path / "plan.json")
    assert loaded.workers[0].power_source == Provenance("nameplate", ("board",))
    assert set(loaded.frameworks.values()) == {loaded.framework} == {"torch"}
